-- State machines: the moves that are allowed, and the moves that were made.

-- Each start copies db/states.ts into this table. The foreign key of `event` refuses every other move.
create table transition (
  machine text not null,
  from_state text not null,
  to_state text not null,
  primary key (machine, from_state, to_state)
);

create table event (
  id bigint generated always as identity primary key,
  machine text not null,
  subject text not null,
  from_state text not null,
  to_state text not null,
  detail jsonb,
  at timestamptz not null,
  foreign key (machine, from_state, to_state) references transition
);
create index event_subject on event (subject, id);

create function reject_change() returns trigger language plpgsql as $$
  begin
    raise exception '% is append only', tg_table_name;
  end $$;
create trigger event_append_only before update or delete or truncate on event
  for each statement execute function reject_change();

-- Records the first move of a row, from `new`, when the row is inserted.
create function record_insert_event() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into event (machine, subject, from_state, to_state, at)
    values (tg_table_name, new.id, 'new', new.state, new.created_at);
    return null;
  end $$;
