const included = 5;
