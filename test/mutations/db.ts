// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

/** Guarded moves and updates. */
export const dbMutations: readonly MutationGroup[] = [
  {
    file: "db/moves.ts",
    tests: ["test/rooms/db/moves.test.ts"],
    mutations: [
      {
        name: "a row moves from whatever state it stands in",
        find: "and state = ${move.from} ${move.where",
        replace: "${move.where",
      },
      {
        name: "a move ignores its further guard",
        find: "${move.where ? sql`and ${move.where}` : sql``}",
        replace: "",
      },
      {
        name: "a payment's version stays the same when it moves",
        find: "state_version + 1",
        replace: "state_version",
      },
      {
        name: "the event of a move loses its detail",
        find: "move.detail ? JSON.stringify(move.detail) : null",
        replace: "null",
      },
      {
        name: "rows that move are locked in no order",
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
        name: "a payment that has succeeded may be processed again",
        find: "succeeded: [],",
        replace: 'succeeded: ["processing"],',
      },
      {
        name: "a transfer that has ended may be included after all",
        find: "confirmed: [],\n    ended: [],",
        replace: 'confirmed: [],\n    ended: ["included"],',
      },
      {
        name: "a paid settlement may be due again",
        find: "paid: [],\n    netted: [],",
        replace: 'paid: ["due"],\n    netted: [],',
      },
    ],
  },
  {
    file: "db/lanes.ts",
    tests: ["test/rooms/db/lanes.test.ts"],
    mutations: [
      {
        name: "a lane is taken from an owner whose lease lasts",
        find: " and (lease_until is null or lease_until <= clock_timestamp())",
        replace: "",
      },
      {
        name: "an owner that has lost its lane still uses its nonces",
        find: '.where("fence", "=", lease.fence)\n    .where("next_nonce"',
        replace: '.where("next_nonce"',
      },
      {
        name: "a nonce is used twice",
        find: '.where("next_nonce", "=", args.nonce)',
        replace: "",
      },
      {
        name: "an owner that has lost its lane gives it back for the next one",
        find: " and fence = ${lease.fence}",
        replace: "",
      },
      {
        name: "a lane that was asked to go on is let go all the same",
        find: "lease_until = case when rung then lease_until end,",
        replace: "lease_until = null,",
      },
    ],
  },
  {
    file: "db/cursors.ts",
    tests: ["test/rooms/db/cursors.test.ts", "test/rooms/transfers/fenced-watch.test.ts"],
    mutations: [
      {
        name: "a watch is taken over while its owner's lease lasts",
        find: "(lease_until is null or lease_until <= clock_timestamp())",
        replace: "true",
      },
      {
        name: "a watcher that was overtaken moves the cursor",
        find: '.where("fence", "=", from.fence)',
        replace: "",
      },
      {
        name: "a cursor moves from a height at which it does not stand",
        find: '.where("number", "=", from.number)',
        replace: "",
      },
      {
        name: "a cursor moves from a block that is not its own",
        find: '.where("hash", "=", from.hash)',
        replace: "",
      },
      {
        name: "a renewal takes back a watch that was released",
        find: '.where("owner", "is not", null)',
        replace: "",
      },
      {
        name: "heights stay confirmed that a reorg has taken away",
        find: "sql`least(final_number, ${to.number})`",
        replace: "sql`final_number`",
      },
      {
        name: "the final height goes down",
        find: '.where("final_number", "<", args.finalNumber)',
        replace: "",
      },
    ],
  },
  {
    file: "db/transfers.ts",
    tests: ["test/rooms/db/claims.test.ts"],
    mutations: [
      {
        name: "a lane is given a transfer that another lane in use has been given",
        find: "l.id = t.lane_id and l.lease_until > clock_timestamp()",
        replace: "false",
      },
      {
        name: "a lane is given a transfer that is on hold",
        find: "and (t.hold_until is null or t.hold_until <= ${args.now})\n",
        replace: "\n",
      },
      {
        name: "a lane carries a transfer that another lane was given",
        find: "where: sql`lane_id = ${args.laneId}`,",
        replace: "",
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
      {
        name: "a transfer is confirmed by a movement above the final height",
        find: " and s.block_number <= ${args.upTo})`",
        replace: ")`",
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
      {
        name: "a transfer is confirmed by a movement that a reorg has taken away",
        find: "s.transfer_id = transfer.id and not s.orphaned and",
        replace: "s.transfer_id = transfer.id and",
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
      {
        name: "a transfer that is carried loses its lane when it is put on hold",
        find: '.where("id", "=", args.id)\n    .where("state", "=", "ready")',
        replace: '.where("id", "=", args.id)',
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
      {
        name: "a transfer ends before its authorization has run out",
        find: '.where("valid_before", "<=", args.at)',
        replace: "",
        tests: ["test/rooms/transfers/watch.test.ts", "test/rooms/transfers/outlived-use.test.ts"],
      },
      {
        name: "two processes lock the same ready transfer for a transaction on Solana",
        find: '.where("state", "=", "ready")\n    .orderBy("id")\n    .forUpdate()',
        replace: '.orderBy("id")\n    .forUpdate()',
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
    ],
  },
  {
    file: "db/sightings.ts",
    tests: ["test/rooms/db/unique-keys.test.ts"],
    mutations: [
      {
        name: "money that is booked as an exception also pays a transfer",
        find: '.where("booked", "=", false)',
        replace: "",
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
      {
        name: "a movement that stands for one transfer is given to another one",
        find: '.where((eb) => eb.or([eb("transfer_id", "is", null), eb("transfer_id", "=", transfer.id)]))',
        replace: "",
      },
      {
        name: "another payer's movement is claimed by its nonce",
        find: "  and payer = ${movement.payer} ",
        replace: "  ",
      },
      {
        name: "a movement of another amount is claimed by its nonce",
        find: " and amount = ${movement.amount}",
        replace: "",
      },
      {
        name: "a movement that is in the books is written again",
        find: '.where("sighting.booked", "=", false),',
        replace: ",",
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
      {
        name: "a movement that a reorg has taken away becomes an exception",
        find: "transfer_id is null and not orphaned and not booked",
        replace: "transfer_id is null and not booked",
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
      {
        name: "a movement that a transfer has claimed meanwhile becomes an exception as well",
        find: ".where(isOneOf(keys))\n    .where(isStray)",
        replace: ".where(isOneOf(keys))",
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
      {
        name: "a payout is taken for made by a movement that a reorg has taken away",
        find: "where not s.orphaned and (s.transfer_id is null or s.transfer_id = p.id)",
        replace: "where (s.transfer_id is null or s.transfer_id = p.id)",
        tests: ["test/rooms/db/guarded-updates.test.ts"],
      },
    ],
  },
  {
    file: "db/transactions.ts",
    tests: ["test/rooms/db/guarded-updates.test.ts"],
    mutations: [
      {
        name: "a transaction that is in a block is noted as offered",
        find: '.where("replacement", "=", key.replacement)\n    .where("state", "in", ["signed", "offered", "accepted"])',
        replace: '.where("replacement", "=", key.replacement)',
      },
      {
        name: "bytes whose replacement a reorg took away are never offered again",
        find: "and t.nonce = lost.nonce and t.state = 'replaced'",
        replace: "and t.nonce = lost.nonce and false",
      },
      {
        name: "bytes stay in flight although others with their nonce are final",
        find: "t.lane_id = f.lane_id and t.nonce = f.nonce and t.state in ('signed', 'offered', 'accepted')\n    )",
        replace: "false\n    )",
      },
    ],
  },
  {
    file: "db/solana-transactions.ts",
    tests: ["test/rooms/db/guarded-updates.test.ts"],
    mutations: [
      {
        name: "a transaction on Solana that has landed is called dead",
        find: '.where("state", "in", ["signed", "offered", "accepted"])\n    .returning(["lane_id", "nonce"])',
        replace: '.returning(["lane_id", "nonce"])',
      },
      {
        name: "a durable nonce is used again before its transaction is final",
        find: '["signed", "offered", "accepted", "included"]',
        replace: '["signed", "offered", "accepted"]',
      },
    ],
  },
];
