-- The newest migration after which `migrate` has revoked what db/grants.ts does not name. It is written with the revocations, so
-- that a run that was interrupted before them leaves them to the next one.
create table revoked_grants (
  only_row boolean primary key default true check (only_row),
  migration text not null
);
