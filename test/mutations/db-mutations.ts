// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const forgedDestinations = ["test/integration/db/forged-destinations.test.ts"];
const unrequestedRefunds = ["test/integration/payments/payouts/restored-unrequested-refunds.test.ts"];

/** Mutations of guarded transitions and updates. */
export const dbMutations: readonly MutationGroup[] = [
  {
    file: "db/migrate.ts",
    tests: ["test/integration/db/grants.test.ts"],
    mutations: [
      {
        name: "a migration whose run was interrupted takes no privileges away",
        find: "await applyGrants(db);",
        replace: "if (ran.length > 0) await applyGrants(db);",
      },
    ],
  },
  {
    file: "workers/clock-gate.ts",
    tests: ["test/unit/workers/clock-gate.test.ts"],
    mutations: [
      {
        name: "workers that begin after the clock was found wrong take jobs",
        find: "if (!trusted) for (const worker of guarded) void worker.pause(true);",
        replace: "",
      },
    ],
  },
  {
    file: "db/migrations/initial/webhooks.sql",
    tests: ["test/integration/workers/locked-table.test.ts"],
    mutations: [
      {
        name: "taking due payments waits for a lock on the table of deliveries",
        find: "if not exists (select from added) then return null; end if;",
        replace: "",
      },
      {
        name: "the time that a stolen login writes postpones the merchant's notice",
        find: "a.priority, a.at, least(a.at, now())",
        replace: "a.priority, a.at, a.at",
        tests: forgedDestinations,
      },
      {
        name: "a merchant's endpoint gets no notice of a change that is forged while it is disabled or narrowed",
        find: "    insert into webhook_former_filter (endpoint_id, event_types, merchant_ids, until)\n    values (old.id, old.event_types, old.merchant_ids, clock_timestamp());\n",
        replace: "",
        tests: forgedDestinations,
      },
      {
        name: "an endpoint gets notices for ever after it was disabled or narrowed",
        find: "endpoint_id = e.id and until > now() - interval '1 day'",
        replace: "endpoint_id = e.id",
        tests: forgedDestinations,
      },
      {
        name: "an endpoint gets events that it never asked for once it is disabled",
        find: "(filter.event_types is null or a.type = any(filter.event_types))",
        replace: "true",
        tests: forgedDestinations,
      },
      {
        name: "an endpoint gets notices of merchants that its filter never named once it is narrowed",
        find: "and (filter.merchant_ids is null or a.merchant_id = any(filter.merchant_ids))",
        replace: "",
        tests: ["test/integration/payments/webhooks/several-endpoints.test.ts"],
      },
      {
        name: "an endpoint that is disabled gets events of payments for a day",
        find: "where a.priority = 0 and endpoint_id = e.id",
        replace: "where endpoint_id = e.id",
        tests: ["test/integration/payments/webhooks/several-endpoints.test.ts"],
      },
      {
        name: "the api's login marks a notice as delivered",
        find: "and not pg_has_role('pay_worker', 'usage'))",
        replace: "and false)",
        tests: forgedDestinations,
      },
      {
        name: "the api's login changes an endpoint of an operator",
        find: "when (old.by_operator and",
        replace: "when (false and",
        tests: forgedDestinations,
      },
    ],
  },
  {
    file: "db/queries/audit-heads.ts",
    tests: ["test/integration/payments/maintenance/gauges.test.ts"],
    mutations: [
      {
        name: "each entry of the audit log counts as a change that was written past the service",
        find: " and actor_kind = 'login'",
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/webhook-deliveries.ts",
    tests: forgedDestinations,
    mutations: [
      {
        name: "the notices of an endpoint that the api's login disables are given up",
        find: "        and not (priority = 0 and exists (select from closed where gets_notices)) limit",
        replace: "        limit",
      },
    ],
  },
  {
    file: "db/queries/webhook-endpoints.ts",
    tests: forgedDestinations,
    mutations: [
      {
        name: "a worker sends nothing to an endpoint that the api's login has disabled",
        find: "then true else p.priority = 0 and ${getsNotices} end",
        replace: "then true else false end",
      },
      {
        name: "an endpoint that was disabled long ago gets its notices",
        find: " and f.until > now() - interval '1 day'",
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/destination-reports.ts",
    tests: forgedDestinations,
    mutations: [
      {
        name: "a change that waits hides the account that applies from the signer",
        find: "d.destination as applied,",
        replace: "case when w.after is null then d.destination end as applied,",
      },
      {
        name: "a change that was applied and undone is hidden from the signer",
        find: "case when a.account is distinct from d.destination and a.account is distinct from w.after then a.account end as past",
        replace: "null as past",
      },
      {
        name: "the signer does not hear that a destination was deleted",
        find: "coalesce(c.after, c.before) as account",
        replace: "c.after as account",
        tests: ["test/integration/signer/changed-back-destinations.test.ts"],
      },
    ],
  },
  {
    file: "db/grants/merchant-grants.ts",
    tests: forgedDestinations,
    mutations: [
      {
        name: "a worker's login requests a change of a destination",
        find: 'worker: { select: "all", update: ["state", "applied_at", "reported_at"] },',
        replace: 'worker: { ...requested, update: ["state", "applied_at", "reported_at"] },',
      },
    ],
  },
  {
    file: "db/migrations/initial/audited-changes.sql",
    tests: ["test/integration/db/unaudited-access.test.ts"],
    mutations: [
      {
        name: "what the api's login writes without the service is not in the audit log",
        find: "if not exists (",
        replace: "if false and not exists (",
      },
      {
        name: "an earlier entry about a key stands for the entry of its change",
        find: " and transaction_id = pg_current_xact_id()",
        replace: "",
      },
      {
        name: "any entry about a key stands for the entry of its change",
        find: "subject = about and action = tg_argv[0]",
        replace: "subject = about",
      },
      {
        name: "the api's login narrows or moves an endpoint without an audit entry",
        find: "(old.url, old.event_types, old.merchant_ids, old.payload) is distinct from",
        replace: "(new.url, new.event_types, new.merchant_ids, new.payload) is distinct from",
      },
      {
        name: "the api's login disables an endpoint without an audit entry",
        find: "or (old.disabled_at is distinct from new.disabled_at",
        replace: "or (false",
      },
      {
        name: "the api's login disables an endpoint as a failing one without an audit entry",
        find: "when (old.disabled_at is distinct from new.disabled_at and new.disabled_reason = 'failing')",
        replace: "when (false)",
      },
      {
        name: "the api's login deletes an endpoint without an audit entry",
        find: "when (old.deleted_at is distinct from new.deleted_at)",
        replace: "when (false)",
      },
      {
        name: "the api's login changes the secret of an endpoint without an audit entry",
        find: "and not pg_has_role('pay_admin', 'usage'))",
        replace: "and false)",
      },
      {
        name: "the api's login takes back the deletion of an endpoint",
        find: "when (old.deleted_at is distinct from new.deleted_at and old.deleted_at is not null)",
        replace: "when (false)",
        tests: forgedDestinations,
      },
      {
        name: "the api's login lets a former secret work for ever",
        find: "interval '30 days 1 minute'",
        replace: "interval '1000 years'",
      },
      {
        name: "the api's login reinstates a revoked key",
        find: "create trigger api_key_revoked before update on api_key for each row\n  when (",
        replace: "create trigger api_key_revoked before update on api_key for each row\n  when (false and ",
      },
    ],
  },
  {
    file: "workers/enqueue-due.ts",
    tests: ["test/integration/workers/locked-table.test.ts"],
    mutations: [
      {
        name: "a sweep enqueues nothing more after one kind of due rows cannot be read",
        find: "await runEach(parts, (part) => part(deps), deps);",
        replace: "for (const part of parts) await part(deps);",
      },
      {
        name: "a sweep postpones the rows of every kind while the store is unavailable",
        find: "await runEach(parts, (part) => part(deps), deps);",
        replace: "await runEach(parts, (part) => part(deps), { isTransient: () => false });",
      },
    ],
  },
  {
    file: "workers/read-in-sequence.ts",
    tests: ["test/unit/workers/read-in-sequence.test.ts"],
    mutations: [
      {
        name: "one statement that waits for a lock takes the gauges of all alerts with it",
        find: "await withTimeout(result, WAIT_MS, group).catch(() => undefined);",
        replace: "await result;",
      },
      {
        name: "a scrape uses every connection of the pool",
        find: "while (running.size >= MOST) await Promise.race(running.values()).catch(() => undefined);",
        replace: "",
      },
      {
        name: "reads that a lock has stopped keep the others from every scrape",
        find: "[...punctual, ...late]",
        replace: "Object.keys(reads)",
      },
      {
        name: "reads that a lock has stopped use as many connections as a scrape may use",
        find: "late.has(group) && countLate() >= MOST_LATE",
        replace: "false",
      },
    ],
  },
  {
    file: "db/queries/ended-payments.ts",
    tests: ["test/integration/db/queries/payment-sums.test.ts"],
    mutations: [
      {
        name: "several workers sum the payments of an account at once",
        find: "    .forUpdate()\n    .skipLocked()\n",
        replace: "",
      },
      {
        name: "a worker waits for the one that sums the payments of the account",
        find: "    .skipLocked()\n",
        replace: "",
      },
      {
        name: "the sets of a merchant's months miss customers of payments that end late",
        find: "e.day < a.sets_before)",
        replace: "false)",
      },
    ],
  },
  {
    file: "db/queries/single-payments.ts",
    tests: ["test/integration/db/queries/payment-sums.test.ts"],
    mutations: [
      {
        name: "totals miss the payments that have ended since sums were added to",
        find: "where e.account_id =",
        replace: "where false and e.account_id =",
      },
    ],
  },
  {
    file: "db/queries/summed-payments.ts",
    tests: ["test/integration/db/queries/payment-sums.test.ts"],
    mutations: [
      {
        name: "totals count payments of the last day that are after the time",
        find: " and k.at < k.before and",
        replace: " and",
      },
      {
        name: "a customer that a set knows counts again",
        find: " & ~coalesce(substring(k.bits from w.first + 1 for 64), 0::bit(64))",
        replace: "",
      },
      {
        name: "totals of most merchants count the payments of the others",
        find: "union all select id, -1 from others where is_most",
        replace: "",
      },
      {
        name: "totals of merchants miss the customers of the newest days",
        find: 'greatest(r."from", a.sets_before)',
        replace: "'infinity'::date",
      },
      {
        name: "totals of merchants miss the customers of the newest month",
        find: "${isWhole ? sql`` : newest}",
        replace: "",
      },
    ],
  },
  {
    file: "db/chain-families.ts",
    tests: ["test/unit/db/chain-families.test.ts"],
    mutations: [
      {
        name: "an address that is not hex is read as one of an EVM chain",
        find: " && [token, payer, receiver].every(isHexText)",
        replace: "",
      },
    ],
  },
  {
    file: "db/migration-lock.ts",
    tests: ["test/integration/db/migrate-busy.test.ts"],
    mutations: [
      {
        name: "a migration does not say which session holds its lock",
        find: "await report(() => listHolders(trx));",
        replace: "",
      },
    ],
  },
  {
    file: "db/migrations/initial/locks.sql",
    tests: ["test/integration/db/queries/named-locks.test.ts"],
    mutations: [
      {
        name: "two transactions lock one name",
        find: "where name = wanted for update;",
        replace: "where name = wanted;",
      },
      {
        name: "two transactions lock one payer",
        find: "order by number for update;",
        replace: "order by number;",
      },
      {
        name: "payers are not locked when the rows of their locks are missing",
        find: "if locked < cardinality(wanted) then",
        replace: "if false then",
      },
    ],
  },
  {
    file: "db/migrations/initial/ledger.sql",
    tests: ["test/integration/db/queries/named-locks.test.ts"],
    mutations: [
      {
        name: "two transactions lock one exception",
        find: "where id = exception for no key update",
        replace: "where id = exception",
      },
    ],
  },
  {
    file: "db/queries/attempts.ts",
    tests: ["test/integration/db/queries/named-locks.test.ts"],
    mutations: [
      {
        name: "two transactions lock the confirms of one payment",
        find: ".forNoKeyUpdate()",
        replace: "",
      },
    ],
  },
  {
    file: "payments/lifecycle/verify-batches.ts",
    tests: ["test/integration/payments/lifecycle/verification-isolation.test.ts"],
    mutations: [
      {
        name: "an attempt whose payment is locked fails its whole batch",
        find: " || (isOneRows(cause) && !isTimeout(cause))",
        replace: "",
      },
      {
        name: "each attempt of a batch that has timed out is tried alone",
        find: "(isOneRows(cause) && !isTimeout(cause))",
        replace: "isOneRows(cause)",
      },
    ],
  },
  {
    file: "db/migrations/initial/destination-changes.sql",
    tests: ["test/integration/db/queries/named-locks.test.ts"],
    mutations: [
      {
        name: "two workers report destinations at the same time",
        find: "perform from named_lock where name = 'destination reports' for update skip locked;",
        replace: "perform from named_lock where name = 'destination reports';",
      },
    ],
  },
  {
    file: "db/apply-grants.ts",
    tests: ["test/integration/db/grants.test.ts"],
    mutations: [
      {
        name: "every role may run trigger functions with their owner's privileges",
        find: "...functions.map((signature) => `revoke all on function ${signature} from ${from}`),",
        replace: "",
      },
      {
        name: "privileges that were granted by hand stay",
        find: '`revoke all on table ${tables.join(", ")} from ${from}`,',
        replace: "",
      },
      {
        name: "`migrate` of a former release with this schema takes privileges from the later one",
        find: "(await isFirstSince(trx))",
        replace: "(await isFirstSince(trx)) || true",
      },
      {
        name: "a migration leaves privileges that the grants do not name",
        find: "    where revoked_grants.migration <> excluded.migration returning migration",
        replace: "    where false returning migration",
      },
    ],
  },
  {
    file: "db/queries/balance-findings.ts",
    tests: ["test/integration/payments/accounting/check-ledger.test.ts"],
    mutations: [
      {
        name: "a balance that differs from the ledger is not found",
        find: "from compared where balance <> owed",
        replace: "from compared where false",
      },
      {
        name: "a wrong group is forgotten when its day is over",
        find: "select day from (${daysFound}) found where",
        replace: "select day from (${daysFound}) found where false and",
      },
      {
        name: "only days with entries are compared with them",
        find: "from booked b full join summed s",
        replace: "from booked b left join summed s",
      },
    ],
  },
  {
    file: "payments/accounting/check-ledger.ts",
    tests: [
      "test/integration/payments/accounting/check-ledger.test.ts",
      "test/integration/payments/accounting/check-scope.test.ts",
    ],
    mutations: [
      {
        name: "a part of the ledger check that fails hides what the others find",
        find: "if (failures.length > 0) await addFindings(deps.db, findings, now);",
        replace: "if (failures.length > 0) throw failures[0];",
      },
      {
        name: "a check reads the payouts of two days, whatever former checks have read",
        find: "const paidSince = last.getTime() - OVERLAP_MS;",
        replace: "const paidSince = last.getTime() - 2 * DAY_MS;",
      },
    ],
  },
  {
    file: "db/queries/settlement-findings.ts",
    tests: [
      "test/integration/payments/accounting/check-ledger.test.ts",
      "test/integration/payments/accounting/check-scope.test.ts",
    ],
    mutations: [
      {
        name: "a payment that the ledger has not booked explains a settlement",
        find: "where t.payment_id = p.id and t.purpose = 'payment' limit 1) is not null",
        replace: "where t.payment_id = p.id and t.purpose = 'payment' limit 1) is not distinct from null or true",
      },
      {
        name: "an assigned exception hides every other settlement of the merchant",
        find: "return rows[0]?.amount === difference;",
        replace: "return rows[0]?.amount !== 0n;",
      },
      {
        name: "only the first page of a settlement's payments is added up",
        find: "if (page.payments < PAYMENTS || page.last === null) return total;",
        replace: "if (page.payments >= 0) return total;",
      },
      {
        name: "a paid settlement without a transfer is not found",
        find: "where (select t.id from transfer t where t.settlement_id = b.id and t.purpose = 'settlement' limit 1) is null",
        replace: "where false and true",
      },
      {
        name: "a settlement that was found wrong is forgotten by later checks",
        find: "union select id from settlement where id = ${anyFound} and state = 'paid'`;",
        replace: "`;",
      },
    ],
  },
  {
    file: "db/queries/payout-findings.ts",
    tests: ["test/integration/payments/accounting/check-ledger.test.ts"],
    mutations: [
      {
        name: "a refund to a stranger is not found",
        find: "and r.receiver is distinct from o.payer",
        replace: "and false",
      },
    ],
  },
  {
    file: "db/moves.ts",
    tests: ["test/integration/db/moves.test.ts"],
    mutations: [
      {
        name: "a row moves from any state",
        find: "and state = ${move.from} ${move.where",
        replace: "${move.where",
      },
      {
        name: "a transition ignores its additional guard",
        find: "${move.where ? sql`and ${move.where}` : sql``}",
        replace: "",
      },
      {
        name: "a payment keeps its version when it changes its state",
        find: "state_version + 1",
        replace: "state_version",
      },
      {
        name: "the event of a transition has no detail",
        find: "move.detail ? JSON.stringify(move.detail) : null",
        replace: "null",
      },
      {
        name: "rows are locked in arbitrary order",
        find: "order by id for update",
        replace: "order by random() for update",
      },
    ],
  },
  {
    file: "db/states.ts",
    tests: ["test/unit/db/states.test.ts"],
    mutations: [
      {
        name: "a succeeded payment can return to processing",
        find: "succeeded: [],",
        replace: 'succeeded: ["processing"],',
      },
      {
        name: "an ended transfer can become included",
        find: "confirmed: [],\n    ended: [],",
        replace: 'confirmed: [],\n    ended: ["included"],',
      },
      {
        name: "a paid settlement can become due again",
        find: "paid: [],\n    netted: [],",
        replace: 'paid: ["due"],\n    netted: [],',
      },
    ],
  },
  {
    file: "db/queries/lanes.ts",
    tests: ["test/integration/db/queries/lanes.test.ts"],
    mutations: [
      {
        name: "a lane is taken from an owner with a valid lease",
        find: " and (lease_until is null or lease_until <= clock_timestamp())",
        replace: "",
      },
      {
        name: "an owner that lost its lane still uses its nonces",
        find: '.where("fence", "=", lease.fence)\n    .where("next_nonce"',
        replace: '.where("next_nonce"',
      },
      {
        name: "a nonce is used twice",
        find: '.where("next_nonce", "=", args.nonce)',
        replace: "",
      },
      {
        name: "an owner that lost its lane releases it for the next one",
        find: " and fence = ${lease.fence}",
        replace: "",
      },
      {
        name: "a lane is released although a wake was requested",
        find: "lease_until = case when wake_requested then lease_until end,",
        replace: "lease_until = null,",
      },
    ],
  },
  {
    file: "db/queries/chain-cursors.ts",
    tests: ["test/integration/db/queries/chain-cursors.test.ts", "test/integration/transfers/watch-lease.test.ts"],
    mutations: [
      {
        name: "a chain that is added after a restore counts as read",
        find: "from database_epoch where began_at is null",
        replace: "from database_epoch",
        tests: ["test/integration/transfers/evm/start-chain.test.ts"],
      },
      {
        name: "a watch is taken over while its owner's lease is valid",
        find: "(lease_until is null or lease_until <= clock_timestamp())",
        replace: "true",
      },
      {
        name: "a watcher that lost its lease moves the cursor",
        find: '.where("fence", "=", from.fence)',
        replace: "",
      },
      {
        name: "a cursor moves from a height at which it is not",
        find: '.where("number", "=", from.number)',
        replace: "",
      },
      {
        name: "a cursor moves from a block that is not the cursor's",
        find: '.where("block_id", "=", from.blockId)',
        replace: "",
      },
      {
        name: "a renewal reacquires a released watch",
        find: '.where("owner", "is not", null)',
        replace: "",
      },
      {
        name: "heights that a reorg removed stay confirmed",
        find: "sql`least(final_number, ${to.number})`",
        replace: "sql`final_number`",
      },
      {
        name: "the final height decreases",
        find: '    .where("final_number", "<", cursor.finalNumber)',
        replace: "",
      },
      {
        name: "a watcher that was overtaken raises the final height",
        find: '.where("fence", "=", cursor.fence)\n    .where("final_number"',
        replace: '.where("final_number"',
      },
    ],
  },
  {
    file: "db/queries/confirmable-transfers.ts",
    tests: ["test/integration/db/queries/guarded-updates.test.ts"],
    mutations: [
      {
        name: "a transfer is confirmed by a movement above the final height",
        find: " and s.block_number <= ${args.upTo})`",
        replace: ")`",
      },
      {
        name: "a transfer is confirmed by a movement that a reorg removed",
        find: "s.transfer_id = transfer.id and not s.orphaned and",
        replace: "s.transfer_id = transfer.id and",
      },
    ],
  },
  {
    file: "db/queries/expired-transfers.ts",
    tests: [
      "test/integration/transfers/watch-pass.test.ts",
      "test/integration/transfers/evm/expire-authorizations.test.ts",
    ],
    mutations: [
      {
        name: "a transfer ends before its authorization expires",
        find: '.where("valid_before", "<=", args.at)',
        replace: "",
      },
      {
        name: "transfers whose payments wait for money to be final take the place of those that end",
        find: '.where(sql<boolean>`not ${isAwaitingMoney("transfer", now)}`)',
        replace: "",
        tests: ["test/integration/db/queries/expired-transfers.test.ts"],
      },
      {
        name: "money that cannot pay a payment keeps its transfer from ending",
        find: "(o.chain, o.authorization_nonce, o.token, o.payer, o.receiver, o.amount)\n      = (s.chain, s.authorization_nonce, s.token, s.payer, s.receiver, s.amount)",
        replace: "true",
        tests: ["test/integration/db/queries/expired-transfers.test.ts"],
      },
      {
        name: "money that one endpoint has invented keeps a transfer from ending for ever",
        find: "and greatest(p.expires_at, (select min(f.observed_at) from observation f\n      where f.authorization_nonce = s.authorization_nonce)) > ${new Date(now.getTime() - LONGEST_WAIT_MS)})`;",
        replace: ")`;",
        tests: ["test/integration/db/queries/expired-transfers.test.ts"],
      },
      {
        name: "money that an endpoint invents again and again keeps a transfer from ending for ever",
        find: "select min(f.observed_at)",
        replace: "select max(f.observed_at)",
        tests: ["test/integration/db/queries/expired-transfers.test.ts"],
      },
      {
        name: "a transfer ends when money that names its payment is recorded at the same moment",
        find: "await sql`select id from transfer where id = ${anyOf(ids)} order by id for update`.execute(db);",
        replace: "",
        tests: ["test/integration/db/queries/expired-transfers.test.ts"],
      },
      {
        name: "a transfer ends although other money waits to be final",
        find: 'and not ${isAwaitingMoney("t", now)}`.execute(db);',
        replace: "`.execute(db);",
        tests: [
          "test/integration/db/queries/expired-transfers.test.ts",
          "test/integration/payments/lifecycle/replaced-when-final.test.ts",
          "test/integration/payments/lifecycle/solana-replaced-when-final.test.ts",
        ],
      },
      {
        name: "a Permit2 transfer ends in the second of its deadline",
        find: 'eb("valid_before", "<", args.at)',
        replace: 'eb("valid_before", "<=", args.at)',
        tests: ["test/integration/transfers/evm/expire-authorizations.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/claim-transfers.ts",
    tests: ["test/integration/db/queries/transfer-assignment.test.ts"],
    mutations: [
      {
        name: "a lane is assigned a transfer that another active lane holds",
        find: "l.id = ${laneId} and l.lease_until > clock_timestamp()",
        replace: "false",
      },
      {
        name: "older refunds are sent before payments and payouts",
        find: "(${column(\"purpose\")} = 'refund'), ",
        replace: "",
      },
      {
        name: "claimed refunds are sent in the order of their age",
        find: "failed || refund ||",
        replace: "failed ||",
      },
      {
        name: "a lane is assigned a delayed transfer",
        find: "and (t.hold_until is null or t.hold_until <= ${args.now})\n",
        replace: "\n",
      },
      {
        name: "a payer's transfers are sent beside the one in flight although one of them has failed",
        find: "and (t.purpose <> 'payment' or t.payer <> all(array(${payersInFlight(args.chain, oneEach)})))\n",
        replace: "\n",
      },
      {
        name: "a payer's newer transfers go before one that failed beside others, until it expires",
        find: "and (t.purpose <> 'payment' or t.retries > 0 or not ${hasSeparated(args)})\n",
        replace: "\n",
      },
      {
        name: "a payer's newer transfers wait for one that failed alone",
        find: "and s.retries > 0 and s.alone and s.purpose = 'payment'",
        replace: "and s.retries > 0 and s.purpose = 'payment'",
      },
      {
        name: "a payer's newer transfers wait for one that failed beside others until it is sent",
        find: "\n      and (s.hold_until is null or s.hold_until <= ${now}))`",
        replace: ")`",
      },
      {
        name: "transfers of a payer that failed beside others wait for each other for ever",
        find: "t.retries > 0 or not",
        replace: "not",
      },
      {
        name: "a payer without a failed transfer has one in flight",
        find: " and f.retries > 0)`",
        replace: ")`",
      },
      {
        name: "transfers that fail keep newer ones out of the batches",
        find: 'sql`(${column("retries")} > 0), ',
        replace: "sql`",
      },
      {
        name: "payouts that fail keep newer payments out of the batches",
        find: 'sql`(${column("retries")} > 0), ',
        replace: 'sql`(${column("retries")} > 0 and ${column("purpose")} = \'payment\'), ',
      },
    ],
  },
  {
    file: "db/queries/transfers.ts",
    tests: ["test/integration/signer/cold-transfers.test.ts"],
    mutations: [
      {
        name: "a transfer to the cold address changes its receiver although a lane has taken it",
        find: '        .where(isUnreserved("transfer"))\n',
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/transfers.ts",
    tests: ["test/integration/db/queries/transfer-assignment.test.ts"],
    mutations: [
      {
        name: "a payment's transfer that fails beside another one of its account shares a transaction again",
        find: "alone: sql<boolean>`alone or purpose = 'payment'`",
        replace: "alone: sql<boolean>`alone`",
        tests: ["test/integration/transfers/evm/overspent-accounts.test.ts"],
      },
      {
        name: "a lane sends a transfer that another lane holds",
        find: '(transfer.lane_id = ${args.laneId} or ${isUnreserved("transfer")}) and ${isUnchanged',
        replace: "${isUnchanged",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
      {
        name: "a lane sends a transfer that has changed since it was signed",
        find: " and ${isUnchanged(args.calls)}`",
        replace: "`",
      },
      {
        name: "a Solana transaction makes a transfer that has changed since it was signed",
        find: "    .where(isUnchanged(calls))\n",
        replace: "",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
      {
        name: "an assigned transfer loses its lane when it is delayed",
        find: '.where("id", "=", args.id)\n    .where("state", "=", "ready")',
        replace: '.where("id", "=", args.id)',
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
      {
        name: "two processes lock the same ready transfer for a transaction on Solana",
        find: '.where("state", "=", "ready")\n    .orderBy("id")\n    .forUpdate()',
        replace: '.orderBy("id")\n    .forUpdate()',
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/observations.ts",
    tests: ["test/integration/db/unique-keys.test.ts"],
    mutations: [
      {
        name: "money that is booked as an exception is also matched to a transfer",
        find: '.where("booked", "=", false)\n    .executeTakeFirst();',
        replace: ".executeTakeFirst();",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
      {
        name: "a movement of one transfer is matched to another one",
        find: '.where((eb) => eb.or([eb("transfer_id", "is", null), eb("transfer_id", "=", transfer.id)]))',
        replace: "",
      },
      {
        name: "another payer's movement is matched by its nonce",
        find: "  and payer = ${movement.payer} ",
        replace: "  ",
      },
      {
        name: "a confirm whose money is booked as an exception is accepted",
        find: ".where(isMovement(movement))\n    .where(sql<boolean>`not booked`)",
        replace: ".where(isMovement(movement))",
        tests: ["test/integration/payments/options/quote-rows.test.ts"],
      },
      {
        name: "a movement of another amount is matched by its nonce",
        find: " and amount = ${movement.amount}",
        replace: "",
      },
      {
        name: "a movement that is booked as an exception also belongs to a transfer when it is observed again",
        find: "when observation.booked then null ",
        replace: "",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
      {
        name: "a booked deposit stays missing when its block returns after a reorg",
        find: "orphaned = false,",
        replace: "orphaned = observation.orphaned and observation.booked,",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/payout-nonces.ts",
    tests: ["test/integration/db/queries/guarded-updates.test.ts"],
    mutations: [
      {
        name: "a stranger's deposit with a refund's nonce counts as the refund",
        find: "args.payer === undefined ? sql",
        replace: "true ? sql",
        tests: ["test/integration/payments/payouts/refund-withdrawals.test.ts"],
      },
      {
        name: "a payout is adopted from a movement that a reorg removed",
        find: "where not s.orphaned and (s.transfer_id is null or s.transfer_id = p.id)",
        replace: "where (s.transfer_id is null or s.transfer_id = p.id)",
      },
    ],
  },
  {
    file: "db/queries/payout-nonces.ts",
    tests: unrequestedRefunds,
    mutations: [
      {
        name: "a lost refund that an operator bears holds its merchant's payouts for ever",
        find: "where not exists (select from ${bookingsOf",
        replace: "where true or not exists (select from ${bookingsOf",
      },
      {
        name: "a refund that a reorg took back holds its merchant's payouts",
        find: "and s.transfer_id is null and s.authorization_nonce is not null and not s.orphaned`;",
        replace: "and s.transfer_id is null and s.authorization_nonce is not null`;",
      },
    ],
  },
  {
    file: "db/queries/possible-refunds.ts",
    tests: unrequestedRefunds,
    mutations: [
      {
        name: "a lost refund to a customer whose payments are summed is not found",
        find: "select payer from customer where owner = s.id and",
        replace: "select payer from customer where false and owner = s.id and",
      },
      {
        name: "a lost refund to a customer whose payments are not summed yet is not found",
        find: "select payment_id from ended_payment where",
        replace: "select payment_id from ended_payment where false and",
      },
    ],
  },
  {
    file: "db/queries/unmatched-movements.ts",
    tests: ["test/integration/db/queries/guarded-updates.test.ts"],
    mutations: [
      {
        name: "money takes the booking of an equal movement that is still on the chain",
        find: "sql<boolean>`orphaned and booked`",
        replace: "sql<boolean>`booked`",
      },
      {
        name: "money whose block a reorg removed before it was final is never booked",
        find: "sql<boolean>`orphaned and booked`",
        replace: "sql<boolean>`orphaned`",
      },
      {
        name: "money takes the booking of a transaction with the same hash on another chain",
        find: '.where("chain", "=", chain)\n    .where(sql<boolean>`tx_hash = any(${hashes})`)',
        replace: ".where(sql<boolean>`tx_hash = any(${hashes})`)",
      },
      {
        name: "a movement that a reorg removed becomes an exception",
        find: "transfer_id is null and not orphaned and not booked",
        replace: "transfer_id is null and not booked",
      },
      {
        name: "a movement that was matched to a transfer meanwhile also becomes an exception",
        find: ".where(isOneOf(keys))\n    .where(isUnmatched)",
        replace: ".where(isOneOf(keys))",
      },
    ],
  },
  {
    file: "db/queries/transactions.ts",
    tests: ["test/integration/db/queries/guarded-updates.test.ts"],
    mutations: [
      {
        name: "a mined transaction is recorded as broadcast",
        find: '.where("replacement", "=", key.replacement)\n    .where("state", "in", ["signed", "broadcast", "accepted"])',
        replace: '.where("replacement", "=", key.replacement)',
      },
      {
        name: "a transaction whose replacement a reorg removed is never broadcast again",
        find: "and t.nonce = lost.nonce and t.state = 'replaced'",
        replace: "and t.nonce = lost.nonce and false",
      },
      {
        name: "a transaction stays in flight although another one with its nonce is final",
        find: "t.lane_id = f.lane_id and t.nonce = f.nonce and t.state in ('signed', 'broadcast', 'accepted')\n    )",
        replace: "false\n    )",
      },
    ],
  },
  {
    file: "db/queries/solana-transactions.ts",
    tests: ["test/integration/db/queries/guarded-updates.test.ts"],
    mutations: [
      {
        name: "a landed Solana transaction is marked expired",
        find: '.where("state", "in", ["signed", "broadcast", "accepted"])\n    .where(\n',
        replace: ".where(\n",
      },
      {
        name: "a payout is given up while its transaction at a higher price may land",
        find: "or twin.state in ('signed', 'broadcast', 'accepted') and twin.hash <> all(${args.hashes})))`,",
        replace: "))`,",
      },
      {
        name: "a payout is given up while its transaction at another price is in a slot",
        find: "and (twin.state = 'included'\n            or twin.state in",
        replace: "and (twin.state in",
      },
      {
        name: "the other transactions of a final one with the same durable nonce stay in flight",
        find: "update transaction t set state = 'replaced' from finished f",
        replace: "update transaction t set state = t.state from finished f",
      },
      {
        name: "an included Solana transaction can be replaced",
        find: '.where("replacement", "=", replacement)\n    .where("state", "in", ["signed", "broadcast", "accepted"])',
        replace: '.where("replacement", "=", replacement)',
      },
      {
        name: "an included transaction is not compared with those that have its durable nonce",
        find: 'eb("state", "=", "included").and("nonce_account", "is not", null).and(hasWaitingTwin),',
        replace: "",
      },
      {
        name: "a durable nonce is used again before its transaction is final",
        find: '["signed", "broadcast", "accepted", "included"]',
        replace: '["signed", "broadcast", "accepted"]',
      },
    ],
  },
];
