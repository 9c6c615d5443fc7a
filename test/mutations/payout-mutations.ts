// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const settlement = ["test/integration/payments/payouts/settle.test.ts"];
const unrequested = ["test/integration/payments/payouts/restored-unrequested-refunds.test.ts"];
const acrossChains = ["test/integration/payments/payouts/restored-refunds-across-chains.test.ts"];
const accumulating = ["test/integration/payments/payouts/accumulated-payouts.test.ts"];

/** Mutations of settlements and their payouts. */
export const payoutMutations: readonly MutationGroup[] = [
  {
    file: "payments/payouts/begin-settlements.ts",
    tests: settlement,
    mutations: [
      {
        name: "a payout begins without a debit of the merchant's balance",
        find: "if (!(await debitMerchant(db, { merchantId, asset, amount }))) return",
        replace: "if (false) return",
      },
      {
        name: "a payout begins although another process has begun it",
        find: "return payouts.filter(({ settlement }) => moved.has(settlement.id));",
        replace: "return [...payouts];",
      },
      {
        name: "a merchant with held payouts is paid out",
        find: 'if (held) return "held";',
        replace: "",
        tests: [
          "test/integration/payments/payouts/accumulated-payouts.test.ts",
          "test/integration/ops/admin/admin-commands.test.ts",
        ],
      },
      {
        name: "a payout overtakes its merchant's refunds",
        find: 'if (refunds.length > 0 && !isPaid) return "refund_pending";',
        replace: "",
        tests: ["test/integration/payments/payouts/refund.test.ts"],
      },
      {
        name: "a refund that waits keeps a payout of a part of a settlement from being adopted after a restore",
        find: "isPaid: forgotten.has(settlement.id)",
        replace: "isPaid: (forgotten.get(settlement.id)?.amount ?? -1n) >= settlement.amount",
        tests: ["test/integration/payments/payouts/restored-draws.test.ts"],
      },
      {
        name: "a payout is sent to an unsupported destination",
        find: 'if (!refused.has(accounts[index] ?? "")) continue;',
        replace: "continue;",
        tests: ["test/integration/payments/payouts/accumulated-payouts.test.ts"],
      },
      {
        name: "a payout of converted money uses other merchants' money",
        find: "if ((await readInventory(db, asset)) < 0n) return",
        replace: "if (false) return",
        tests: ["test/integration/payments/payouts/cross-asset-payments.test.ts"],
      },
      {
        name: "a payout of converted money holds its settlement while it waits for the inventory",
        find: "for (const asset of listInventories(payouts)) await lockInventory(db, asset);\n  const begun = await moveToPaying(db, payouts, at);",
        replace:
          "const begun = await moveToPaying(db, payouts, at);\n  for (const asset of listInventories(payouts)) await lockInventory(db, asset);",
        tests: ["test/integration/payments/payouts/treasury-inventory.test.ts"],
      },
      {
        name: "a payout begins in another epoch than the one in which it was decided",
        find: "const passed = await deps.epoch.pass(db, ...epochs.values());",
        replace: "const passed = { ok: true as const, afterCommit: async () => undefined };",
        tests: ["test/integration/payments/payouts/restored-signatures.test.ts"],
      },
    ],
  },
  {
    file: "payments/payouts/renew-payouts.ts",
    tests: ["test/integration/payments/payouts/renewed-payouts.test.ts"],
    mutations: [
      {
        name: "a payout is renewed although a restored database may have lost its transaction",
        find: 'obstacle: isUnread ? ("watcher_behind" as const) : findObstacle(payout),',
        replace: "obstacle: findObstacle(payout),",
      },
      {
        name: "a renewed settlement keeps the destination that was registered when it began",
        find: "receiver: payout.settlement_id === null ? payout.receiver : receiverOf(chain.chain, payout.registered),",
        replace: "receiver: payout.receiver,",
      },
      {
        name: "a renewed payout goes to a destination that screening rejects",
        find: "return ready.filter(({ receiver }) => !rejected.has(receiver));",
        replace: "return ready;",
      },
      {
        name: "a renewed settlement names its former destination",
        find: "await recordDestination(db, { id: payout.settlement_id, destination: payout.registered });",
        replace: "await Promise.resolve();",
      },
    ],
  },
  {
    file: "db/queries/unsent-payouts.ts",
    tests: ["test/integration/payments/payouts/renewed-payouts.test.ts"],
    mutations: [
      {
        name: "every payout that waits for its lane is renewed",
        find: "and (t.payer <> ${treasury} or t.retries > 0)",
        replace: "",
      },
      {
        name: "a failed payout of the present treasury is never renewed",
        find: "(t.payer <> ${treasury} or t.retries > 0)",
        replace: "t.payer <> ${treasury}",
      },
      {
        name: "a payout is renewed to a destination that has changed since it was signed",
        find: "where s.id = t.settlement_id and d.destination = ${payout.registered}))`)",
        replace: "where s.id = t.settlement_id))`)",
      },
      {
        name: "a payout is renewed although its merchant was held while it was signed",
        find: "select from settlement s join merchant m on m.id = s.merchant_id and m.payouts_held_at is null",
        replace: "select from settlement s",
      },
      {
        name: "a payout that was in a transaction is renewed",
        find: "    .where(sql<boolean>`not ${wasAssigned}`)\n",
        replace: "",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
      {
        name: "a renewal overwrites a receiver that it has not read",
        find: '.where("receiver", "=", payout.receiver)',
        replace: "",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
      {
        name: "a renewal signs an amount that the payout no longer has",
        find: '.where("amount", "=", payout.amount)',
        replace: "",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
      {
        name: "a payout that stays as it was counts as renewed",
        find: "(t.payer, t.receiver, t.signature) is distinct from",
        replace: "true or (t.payer, t.receiver, t.signature) is distinct from",
      },
    ],
  },
  {
    file: "payments/payouts/payout-policies.ts",
    tests: ["test/integration/ops/admin/admin-commands.test.ts"],
    mutations: [
      {
        name: "a second operator's hold replaces the first one's",
        find: "if (args.hold && before)",
        replace: "if (args.hold && before && !args.hold)",
      },
    ],
  },
  {
    file: "payments/maintenance/operator-actions.ts",
    tests: ["test/integration/ops/admin/admin-commands.test.ts"],
    mutations: [
      {
        name: "the retry of a payment leaves its refund's queue blocked",
        find: 'await wakeRefunds(db, { merchantId: merchant_id ?? "", asset: owed_asset ?? asset });',
        replace: "void [merchant_id, asset, owed_asset, wakeRefunds];",
      },
      {
        name: "the retry of a payment in another asset leaves its refund's queue blocked",
        find: "asset: owed_asset ?? asset",
        replace: "asset: asset ?? owed_asset",
        tests: ["test/integration/payments/payouts/refund-rounding.test.ts"],
      },
    ],
  },
  {
    file: "payments/payouts/accrue.ts",
    tests: accumulating,
    mutations: [
      {
        name: "a booking adds the money of two accumulated payouts to both of them",
        find: "parts.find((part) => part.converted === converted)?.amount ?? 0n",
        replace:
          "sumParts({ ...group, credits: group.credits.map((one) => ({ ...one, converted })) })[0]?.amount ?? 0n",
        tests: ["test/integration/payments/payouts/accrue.test.ts"],
      },
      {
        name: "settlements of one booking share a number",
        find: "number: first + index, amount",
        replace: "number: first, amount",
        justification:
          "the unique key of the number rejects the second settlement, and each payment is then booked separately",
        tests: ["test/integration/payments/payouts/settle.test.ts"],
      },
      {
        name: "an accumulated payout that has reached its limit waits",
        find: "const isEnough = policy.accumulation_amount !== null && part.amount >= policy.accumulation_amount;",
        replace: "const isEnough = false;",
      },
      {
        name: "money that came in another asset accumulates with the merchant's own",
        find: "Map.groupBy(credits, isConverted)",
        replace: "Map.groupBy(credits, () => false)",
        tests: ["test/integration/payments/payouts/accrue.test.ts"],
      },
      {
        name: "two accumulated payouts that begin in one booking share a number",
        find: "number: first + index, at }",
        replace: "number: first, at }",
        tests: ["test/integration/payments/payouts/accrue.test.ts"],
      },
      {
        name: "a merchant is credited for only one of several payments",
        find: "const amount = items.reduce((sum, credit) => sum + credit.amount, 0n);",
        replace: "const amount = items[0]?.amount ?? 0n;",
        tests: ["test/integration/payments/payouts/accrue.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/accumulating-settlements.ts",
    tests: accumulating,
    mutations: [
      {
        name: "an accumulated payout does not become due when it reaches its limit",
        find: "due_at = case when s.amount + a.amount >= ${limit}::numeric then ${at}::timestamptz else s.due_at end",
        replace: "due_at = s.due_at",
      },
      {
        name: "an accumulated payout is closed although its merchant's payouts are held",
        find: "m.id = merchant_id and m.payouts_held_at is null)",
        replace: "m.id = merchant_id)",
      },
      {
        name: "an accumulated payout is closed below its minimum",
        find: "d.minimum > settlement.amount",
        replace: "false",
      },
      {
        name: "two accumulated payouts that begin concurrently lose the money of one",
        find: "amount: sql`settlement.amount + excluded.amount`",
        replace: "amount: sql`settlement.amount`",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/settlements.ts",
    tests: accumulating,
    mutations: [
      {
        name: "a payout begins although it was signed for another amount",
        find: 'from: "due", to: "paying", at, set, where }',
        replace: 'from: "due", to: "paying", at, set }',
        tests: settlement,
      },
      {
        name: "a payout begins although its merchant's payouts were held while it was signed",
        find: "m.id = settlement.merchant_id and m.payouts_held_at is null)",
        replace: "m.id = settlement.merchant_id)",
        tests: settlement,
      },
      {
        name: "a refund draws on a settlement that has begun",
        find: '.where("state", "in", ["due", "accumulating"])\n    .$narrowType',
        replace: ".$narrowType",
        tests: ["test/integration/db/queries/guarded-updates.test.ts"],
      },
    ],
  },
  {
    file: "db/migrations/initial/payout-queue.sql",
    tests: ["test/integration/db/queries/payout-queue.test.ts"],
    mutations: [
      {
        name: "an accumulated payout that begins above its minimum waits behind another one that is below it",
        find: "create trigger settlement_begins_at_minimum after insert on settlement for each row\n  when (new.state = 'accumulating') execute function wake_settlements_at_minimum();",
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/inventory.ts",
    tests: ["test/integration/payments/payouts/cross-asset-payments.test.ts"],
    mutations: [
      {
        name: "two concurrent payouts both use the same inventory",
        find: "await sql`select lock_inventory(${asset})`.execute(db);",
        replace: "",
      },
      {
        name: "the inventory includes money that is payable to merchants",
        find: "- coalesce((select sum(amount) from merchant_balance where asset = ${asset}), 0)",
        replace: "",
      },
    ],
  },
  {
    file: "payments/payouts/paid-before-restore.ts",
    tests: ["test/integration/payments/payouts/restored-inventory.test.ts"],
    mutations: [
      {
        name: "a lost payout waits for the inventory that has paid it",
        find: "return forgotten.get(id)?.booked === true;",
        replace: "return forgotten === undefined;",
      },
    ],
  },
  {
    file: "payments/payouts/dispatch-payouts.ts",
    tests: ["test/integration/payments/payouts/treasury-inventory.test.ts"],
    mutations: [
      {
        name: "a refund that fails hides why others of its batch wait",
        find: 'if (typeof outcome === "object") return "failed";',
        replace: 'if (typeof outcome === "object") throw outcome.error;',
        tests: ["test/integration/payments/payouts/refund-guards.test.ts"],
      },
      {
        name: "a refund that fails waits as long as one that lacks balance",
        find: "(hasFailed || isTransientObstacle(obstacle))",
        replace: "isTransientObstacle(obstacle)",
        tests: ["test/integration/payments/payouts/refund-guards.test.ts"],
      },
      {
        name: "a refund that lacks balance hides another one that lacks inventory",
        find: 'found.find((one) => one === "inventory_short") ??',
        replace: "",
      },
      {
        name: "a lack of inventory delays a refund whose refusal may go away within a minute",
        find: "found.find(isTransientObstacle) ??",
        replace: "",
        tests: ["test/unit/payments/payouts/choose-obstacle.test.ts"],
      },
      {
        name: "a lack of inventory hides a refusal that a person has to find out about",
        find: 'found.find((one) => one === "unrecorded_payout" || isRefusal(one)) ??',
        replace: "",
        tests: ["test/unit/payments/payouts/choose-obstacle.test.ts"],
      },
    ],
  },
  {
    file: "payments/payouts/split-by-cover.ts",
    tests: ["test/integration/payments/payouts/treasury-inventory.test.ts"],
    mutations: [
      {
        name: "the signer is asked for a refund whose merchant's balance came in another asset that waits for inventory",
        find: "left.converted - after.converted",
        replace: "0n",
      },
      {
        name: "a refund is drawn on what a lost refund of another payment has sent",
        find: "if (rest < drawn + kept) {",
        replace: "if (rest < 0n) {",
        tests: unrequested,
      },
      {
        name: "the signer is asked for refunds that their merchant's balance does not cover together",
        find: "balances.set(keyOf(balance), after);",
        replace: "",
        tests: ["test/integration/signer/payouts-that-wait.test.ts"],
      },
    ],
  },
  {
    file: "payments/payouts/paid-before-restore.ts",
    tests: ["test/integration/payments/payouts/restored-payouts.test.ts"],
    mutations: [
      {
        name: "a refund that was sent before a restore waits behind a later one that was sent too",
        find: "if (own) {",
        replace: "if (false) {",
        tests: ["test/integration/payments/payouts/revived-refunds.test.ts"],
      },
      {
        name: "a settlement overtakes a payout of its merchant whose commit was lost in a restore",
        find: "ids.size > 0 || drawnOf({ merchantId, asset }) > 0n;",
        replace: "drawnOf({ merchantId, asset }) > 0n;",
      },
      {
        name: "a forgotten payout that its merchant's settlements wait for is adopted only when its turn comes",
        find: "first.push(...",
        replace: "[].push(...",
        tests: ["test/integration/payments/payouts/restored-backlog.test.ts"],
      },
      {
        name: "a merchant is paid what a lost refund has sent to the buyer",
        find: "ids.size > 0 || drawnOf({ merchantId, asset }) > 0n;",
        replace: "ids.size > 0;",
        tests: unrequested,
      },
      {
        name: "a refund is drawn on what the chain shows as paid, beside what a lost refund has sent",
        find: "reserved.set(id, { drawn, kept });",
        replace: "reserved.set(id, { drawn, kept: 0n });",
        tests: ["test/integration/payments/payouts/restored-draws.test.ts"],
      },
      {
        name: "a refund that a restore has revived is sent beside its replacement",
        find: "refundKey({ merchantId, paymentId, number: one })",
        replace: "refundKey({ merchantId, paymentId, number })",
        tests: ["test/integration/payments/payouts/revived-refunds.test.ts"],
      },
    ],
  },
  {
    file: "payments/payouts/find-forgotten-draws.ts",
    tests: unrequested,
    mutations: [
      {
        name: "a lost refund that was requested again counts twice",
        find: "if (isKnown) return sent > row.amount ? sent - row.amount : 0n;",
        replace: "if (isKnown) return sent;",
      },
      {
        name: "a merchant who requests less than a lost refund has sent is paid the difference",
        find: "if (isKnown) return sent > row.amount ? sent - row.amount : 0n;",
        replace: "if (isKnown) return 0n;",
      },
      {
        name: "each payout reads customers for ever after an operator has withdrawn capital",
        find: "if (made.length === 0) return () => 0n;",
        replace: "",
      },
      {
        name: "a refund overtakes a lost one that was requested again",
        find: 'if (row?.state === "due") return sent;',
        replace: 'if (row?.state === "due") return 0n;',
      },
      {
        name: "of the lost refunds of a payment only the first is looked for",
        find: "number <= highest + LATER_NUMBERS;",
        replace: "number <= 1;",
      },
      {
        name: "a lost refund is drawn on a balance in the asset that was paid, and not on the one that is owed",
        find: "payment.owed_asset ?? payment.paid_asset",
        replace: "payment.paid_asset",
        tests: acrossChains,
      },
      {
        name: "lost refunds on other chains are not looked for",
        find: "return [...chains.values()].map(",
        replace: "return [...chains.values()].slice(0, 1).map(",
        tests: acrossChains,
      },
    ],
  },
  {
    file: "payments/payouts/begin-settlements.ts",
    tests: acrossChains,
    mutations: [
      {
        name: "a payout of money that came on other chains begins before they are read again",
        find: "&& (isReread || !mixed) ? undefined",
        replace: "? undefined",
      },
    ],
  },
  {
    file: "payments/payouts/begin-refunds.ts",
    tests: acrossChains,
    mutations: [
      {
        name: "a refund is drawn on what a lost refund on a chain that is not read again has taken",
        find: "&& (isReread || !mixed);",
        replace: ";",
      },
      {
        name: "a refund that a balance covers beside a lost refund waits for it",
        find: "reserved: reserved.get(id)",
        replace: "reserved: reserved.has(id) ? { drawn: 10n ** 30n, kept: 0n } : undefined",
        tests: ["test/integration/payments/payouts/revived-refunds.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/settlements.ts",
    tests: acrossChains,
    mutations: [
      {
        name: "a payout of money of its own chain begins before others are read again, whose refunds were drawn on it",
        find: "s.converted or coalesce(d.accepts_other_assets, false)",
        replace: "s.converted",
      },
    ],
  },
  {
    file: "db/queries/payout-queue.ts",
    tests: acrossChains,
    mutations: [
      {
        name: "payouts that waited for a lost refund on another chain are not woken when an operator bears it",
        find: "(${isShort(chain)} or ${isUnrecorded})",
        replace: "chain = ${chain} and (${isShort(chain)} or ${isUnrecorded})",
      },
    ],
  },
  {
    file: "payments/accounting/resolve-exceptions.ts",
    tests: unrequested,
    mutations: [
      {
        name: "payouts that waited for a lost refund are not woken when an operator bears it",
        find: "return wakeResolved(db, chainOf(asset));",
        replace: "void [wakeResolved, db, asset]; return Promise.resolve();",
      },
    ],
  },
  {
    file: "payments/payouts/split-payout.ts",
    tests: ["test/integration/payments/payouts/restored-remainders.test.ts"],
    mutations: [
      {
        name: "the signer counts the remainder of a lost payout twice, and never signs it",
        find: "if (!payout || payout.amount >= row.amount) result.ready.push(row);",
        replace: "if (payout || !payout) result.ready.push(row);",
      },
      {
        name: "two workers split a settlement twice",
        find: "const now = { ...settlement, amount: locked.amount };",
        replace: "const now = { ...settlement };",
      },
      {
        name: "a settlement is split by a payout that a reorg can revert",
        find: "else if (!payout.booked) result.waiting.push(row);",
        replace: "",
        tests: ["test/integration/payments/payouts/restored-payouts.test.ts"],
      },
      {
        name: "the remainder of a settlement that has not begun is credited a second time",
        find: "{ rest, credit: 0n }",
        replace: "{ rest, credit: rest }",
      },
      {
        name: "payments that an adopted payout does not cover are reported as paid out with it",
        find: "await relinkUnpaid(db, { from: id, to: row.id, paid: settlement.amount - rest });",
        replace: "",
      },
      {
        name: "the remainder of a converted refund draws nothing",
        find: "owedNext === 0n ? 1n : owedNext",
        replace: "owedNext",
        tests: ["test/integration/payments/payouts/refund-rounding.test.ts"],
      },
      {
        name: "the remainder of a lost refund is refunded although others of its payment have sent it",
        find: "const next = left < rest ? left : rest;",
        replace: "const next = left > rest ? left : rest;",
        tests: ["test/integration/payments/payouts/restored-refunds.test.ts"],
      },
    ],
  },
];
