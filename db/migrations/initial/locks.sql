-- A lock is a row. Any login may take advisory locks, also one that only reads, and could keep others waiting with them. No
-- role may lock these rows: functions do so for the roles that may call them.
create table named_lock (
  name text primary key
);
insert into named_lock (name) values ('audit chain'), ('destination reports');
