CREATE INDEX signatures_by_name ON signatures (name);
