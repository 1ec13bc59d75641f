create table t(n integer primary key, s text, b blob);
