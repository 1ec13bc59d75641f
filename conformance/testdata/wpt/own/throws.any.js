throw new TypeError("at once");
