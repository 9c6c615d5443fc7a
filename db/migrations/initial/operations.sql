-- The audit log of operators: what they did with admin commands and with the queue board.

create table operator_action (
  id bigint generated always as identity primary key,
  actor text not null,
  action text not null,
  queue text,
  job_id text,
  subject text,
  at timestamptz not null
);
