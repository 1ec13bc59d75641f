CREATE TABLE signatures (
  message TEXT PRIMARY KEY, -- the queue's id: a message that comes twice counts once
  name TEXT NOT NULL
) WITHOUT ROWID;
