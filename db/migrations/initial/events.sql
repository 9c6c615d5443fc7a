-- State machines: the moves that are allowed, and the moves that were made.

-- Each start copies db/states.ts into this table. A trigger of `event` refuses every other move.
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
  at timestamptz not null
);
create index event_subject on event (subject, id);

-- Refuses moves that `transition` does not list. A foreign key would check and lock a row for every event; this trigger
-- runs once for each statement.
create function reject_unknown_moves() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    unknown record;
  begin
    select machine, from_state, to_state into unknown from added a
    where not exists (
      select from transition t
      where t.machine = a.machine and t.from_state = a.from_state and t.to_state = a.to_state)
    limit 1;
    if found then
      raise foreign_key_violation
        using message = format('%s cannot move from %s to %s', unknown.machine, unknown.from_state, unknown.to_state);
    end if;
    return null;
  end $$;
create trigger event_known_moves after insert on event referencing new table as added
  for each statement execute function reject_unknown_moves();

-- Refuses an update that moves a row between states. Each table that the api may write has a trigger whose condition lists the moves
-- of db/states.ts: a stolen login could otherwise write a state that is none, and workers sign an event for it.
create function reject_unknown_move() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    raise foreign_key_violation using message = format('%s cannot move from %s to %s', tg_table_name, old.state, new.state);
  end $$;

create function reject_change() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    raise exception '% is append only', tg_table_name;
  end $$;

-- Events leave by the functions of retention.sql only, which set `pay.removes_history`.
create function reject_event_change() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
  begin
    if tg_op = 'DELETE' and current_setting('pay.removes_history', true) = 'on' then
      return null;
    end if;
    raise exception '% is append only', tg_table_name;
  end $$;
create trigger event_append_only before update or delete or truncate on event
  for each statement execute function reject_event_change();

-- Records the first move of each inserted row, from `new`. One statement records those of all its rows.
create function record_insert_events() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    insert into event (machine, subject, from_state, to_state, at)
    select tg_table_name, id, 'new', state, created_at from added;
    return null;
  end $$;
