export const value = 4;
