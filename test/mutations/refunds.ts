// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const refunds = ["test/rooms/payments/refunds.test.ts"];

/** Refunds: what is asked for, what it draws on, and what is adopted after a restore. */
export const refundMutations: readonly MutationGroup[] = [
  {
    file: "payments/refund.ts",
    tests: refunds,
    mutations: [
      {
        name: "a partial refund is rounded up",
        find: "((payment.paid_amount ?? 0n) * value) / payment.value",
        replace: "((payment.paid_amount ?? 0n) * value + payment.value - 1n) / payment.value",
        tests: ["test/rooms/payments/refund-rounding.test.ts"],
      },
      {
        name: "what a refund draws is rounded down",
        find: "(owed_amount * amount + net - 1n) / net",
        replace: "(owed_amount * amount) / net",
        tests: ["test/rooms/payments/refund-rounding.test.ts"],
      },
      {
        name: "a refund draws as if no fee had been taken",
        find: "const net = paid_amount - fee;",
        replace: "const net = paid_amount;",
        tests: ["test/rooms/payments/other-assets.test.ts"],
      },
      {
        name: "a payment is refunded again and again",
        find: "sum + amount, 0n",
        replace: "sum, 0n",
      },
      {
        name: "a refund may be larger than what is left",
        find: "amount <= 0n || amount > left",
        replace: "amount <= 0n",
      },
      {
        name: "a refund of nothing, or of less, is taken",
        find: "amount <= 0n || amount > left",
        replace: "amount > left",
        tests: ["test/rooms/payments/refund-rounding.test.ts"],
      },
      {
        name: "refunds of one payment at the same moment do not see each other",
        find: "await lockPayments(db, [payment.id]);",
        replace: "",
      },
      {
        name: "an amount in another currency counts as the payment's",
        find: "if (unit !== payment.unit) return undefined;",
        replace: "",
      },
      {
        name: "what a buyer paid to the merchant directly is sent back with our money",
        find: "option !== undefined && !payment.direct;",
        replace: "option !== undefined;",
        tests: ["test/rooms/payments/direct.test.ts"],
      },
      {
        name: "a refund of a test payment moves money",
        find: 'payment.mode === "live" && option !== undefined',
        replace: "option !== undefined",
      },
    ],
  },
  {
    file: "payments/begin-refunds.ts",
    tests: refunds,
    mutations: [
      {
        name: "a refund draws on the money of other merchants",
        find: "if (!(await debitMerchant(db, { merchantId, asset, amount }))) return",
        replace: "if (false) return",
      },
      {
        name: "a refund begins although its settlements do not come to it",
        find: 'return left > 0n ? "balance_short" : undefined;',
        replace: "return undefined;",
        tests: ["test/rooms/payments/refund-guards.test.ts"],
      },
      {
        name: "a refund gives up when the settlements it chose have begun meanwhile",
        find: "sumOf(locked) < amount && sumOf(chosen) >= amount",
        replace: "false",
        tests: ["test/rooms/payments/refund-guards.test.ts"],
      },
      {
        name: "a refund that has begun begins again",
        find: "if (moved.length === 0) return",
        replace: "if (false) return",
        tests: ["test/rooms/payments/refund-guards.test.ts"],
      },
      {
        name: "a refund goes to an account that is not served any more",
        find: "if (refused.size === 0) return undefined;",
        replace: "if (true) return undefined;",
      },
      {
        name: "a refund of converted money is paid with the money of others",
        find: "refund.owed_asset !== null && (await readStock(db, asset)) < 0n",
        replace: "false",
        tests: ["test/rooms/payments/refund-guards.test.ts"],
      },
      {
        name: "a refund begins while the watcher is behind",
        find: 'caughtUp.has(chainOf(refund.asset)) ? await hold(deps, refund) : "watcher_behind"',
        replace: "await hold(deps, refund)",
        justification:
          "a chain that is behind has no epoch, and without one the transaction that begins the refund is undone",
        tests: ["test/rooms/payments/refunds.test.ts"],
      },
      {
        name: "a refund takes a settlement whole that is larger",
        find: "if (amount > atMost) {",
        replace: "if (false) {",
      },
      {
        name: "a refund is begun in another epoch than it was decided in",
        find: "counted: await deps.epoch.pass(db, epoch)",
        replace: "counted: async () => undefined",
        tests: ["test/rooms/payments/stepped-back.test.ts"],
      },
    ],
  },
  {
    file: "payments/adopt.ts",
    tests: ["test/rooms/payments/restored-payouts.test.ts"],
    mutations: [
      {
        name: "a payout of less than was owed ends what is owed",
        find: "if (rest > 0n) await splitSettlement(deps, db, settlement, rest);",
        replace: "",
      },
      {
        name: "a payout of more than was owed is not taken from the merchant's other settlements",
        find: "rest < 0n ? await fillSettlement(deps, db, settlement, -rest) : 0n",
        replace: "0n",
      },
      {
        name: "what a payout moved beyond what is owed is not booked",
        find: "const amount = rest > 0n ? movement.amount : transfer.amount;\n    await bookOverpaid(",
        replace: "const amount = rest > 0n ? movement.amount : transfer.amount;\n    if (false) await bookOverpaid(",
      },
      {
        name: "a movement that becomes a payout stays in the exceptions",
        find: "if (movement.booked) await reverseException(",
        replace: "if (false) await reverseException(",
      },
    ],
  },
];
