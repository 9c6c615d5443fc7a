// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

/** Mutations of the bookings of payments, fees and exceptions, and of the ledger itself. */
export const bookingMutations: readonly MutationGroup[] = [
  {
    file: "payments/options/quote-contradictions.ts",
    tests: ["test/integration/payments/options/forged-quotes.test.ts"],
    mutations: [
      {
        name: "a quote in another token is paid by",
        find: 'if (token.token !== quote.token) return "token";',
        replace: "",
      },
      {
        name: "a quote with the nonce of another payment is paid by",
        find: "quote.authorization_nonce !== deriveNonce(deps.networks.deployment, key)",
        replace: "key === undefined",
      },
      {
        name: "a quote for less than the payment is paid by",
        find: "quote.amount === exact.value",
        replace: "quote.amount > 0n",
      },
      {
        name: "a quote below the price is paid by",
        find: "quote.amount * 100n >= asked.value * (100n - MAX_DISCOUNT)",
        replace: "quote.amount > 0n",
      },
      {
        name: "a quote in a currency without a feed is paid by",
        find: " || !hasFeed(deps, payment.unit, token.peg)",
        replace: "",
      },
      {
        name: "a quote without a price is paid by",
        find: "quote.rate === null || ",
        replace: "",
      },
      {
        name: "a quote credits a merchant with more than the buyer pays",
        find: "amount === scaleDown(",
        replace: "amount >= scaleDown(",
      },
      {
        name: "money is an exception when the asset that its merchant is owed has left the networks file",
        find: "owed ? owed.decimals : delisted.get(asset)",
        replace: "owed?.decimals",
        tests: ["test/integration/payments/options/delisted-owed-assets.test.ts"],
      },
    ],
  },
  {
    file: "payments/lifecycle/paid-quotes.ts",
    tests: ["test/integration/payments/options/forged-quotes.test.ts"],
    mutations: [
      {
        name: "money pays by a quote that contradicts its payment",
        find: "quoted.filter((one) => !contradictions.has(one))",
        replace: "quoted",
      },
    ],
  },
  {
    file: "payments/lifecycle/succeed-payments.ts",
    tests: ["test/integration/payments/merchants/fees.test.ts"],
    mutations: [
      {
        name: "a merchant is owed the operator's fee",
        find: "amount: transfer.amount - payment.fee",
        replace: "amount: transfer.amount",
      },
      {
        name: "money for an ended payment is not booked",
        find: "if (!isDirect) groups.push(exceptionGroup(transfer));",
        replace: "",
        tests: ["test/integration/payments/accounting/exceptions.test.ts"],
      },
      {
        name: "money that a buyer paid to the merchant directly is booked as the operator's",
        find: "if (payment?.direct) {",
        replace: "if (false) {",
        tests: ["test/integration/payments/payouts/direct.test.ts"],
      },
    ],
  },
  {
    file: "payments/lifecycle/book-transfers.ts",
    tests: ["test/integration/payments/payouts/settle.test.ts", "test/integration/payments/payouts/refund.test.ts"],
    mutations: [
      {
        name: "a payout is booked although its settlement is not being paid",
        find: "if (moved.length !== payouts.length) throw",
        replace: "if (false) throw",
        tests: ["test/integration/payments/accounting/booking-guards.test.ts"],
      },
      {
        name: "a refund is booked although it is not being paid",
        find: "if (moved !== transfers.length) throw",
        replace: "if (false) throw",
        tests: ["test/integration/payments/accounting/booking-guards.test.ts"],
      },
      {
        name: "a transaction that is final again after a reorg cannot be booked",
        find: "await insertGroups(db, await keepNewGroups(db, groups), deps.now());",
        replace: "await insertGroups(db, groups, deps.now());",
        tests: ["test/integration/transfers/evm/deep-reorgs.test.ts"],
      },
    ],
  },
  {
    file: "payments/accounting/ledger-groups.ts",
    tests: ["test/unit/payments/accounting/ledger-groups.test.ts"],
    mutations: [
      {
        name: "money that left the treasury is booked as a deposit",
        find: "receiver === chain.treasury ? observation.amount : -observation.amount",
        replace: "observation.amount",
      },
      {
        name: "money that went to a merchant directly is booked as an exception",
        find: "if (payer !== chain.treasury && receiver !== chain.treasury) return undefined;",
        replace: "",
        tests: ["test/integration/payments/lifecycle/replaced-when-final.test.ts"],
      },
      {
        name: "a transfer from the treasury to itself is booked",
        find: "if (payer === receiver) return undefined;",
        replace: "",
      },
      {
        name: "a fee is taken from the merchant but not credited to the fee account",
        find: "account: accounts.fees, asset, amount: -fee",
        replace: "account: accounts.capital, asset, amount: -fee",
        tests: ["test/integration/payments/merchants/fees.test.ts"],
      },
      {
        name: "converted money is credited in the asset in which it arrived",
        find: "{ account: payable, asset: converted.asset, amount: -converted.amount },",
        replace: "{ account: accounts.capital, asset: converted.asset, amount: -converted.amount },",
        tests: ["test/integration/payments/payouts/cross-asset-payments.test.ts"],
      },
      {
        name: "money for an ended payment is booked as capital",
        find: 'kind: "exception",\n    subject: transfer.id,\n    onChain: placeOf(transfer),\n    entries: doubleEntry({ debit: accounts.treasury, credit: accounts.exceptions,',
        replace:
          'kind: "exception",\n    subject: transfer.id,\n    onChain: placeOf(transfer),\n    entries: doubleEntry({ debit: accounts.treasury, credit: accounts.capital,',
        tests: ["test/integration/payments/accounting/exceptions.test.ts"],
      },
      {
        name: "gas is booked on a lane that did not pay it",
        find: "credit: accounts.lane(spent.address), asset, amount: fee",
        replace: "credit: accounts.capital, asset, amount: fee",
        tests: ["test/integration/payments/accounting/gas-costs.test.ts"],
      },
    ],
  },
  {
    file: "payments/accounting/payout-groups.ts",
    tests: ["test/integration/payments/payouts/settle.test.ts"],
    mutations: [
      {
        name: "a payout that has arrived stays in transit",
        find: "debit: accounts.inTransit, credit: accounts.treasury, asset, amount",
        replace: "debit: accounts.losses, credit: accounts.treasury, asset, amount",
      },
    ],
  },
  {
    file: "payments/merchants/fee-policies.ts",
    tests: ["test/unit/payments/merchants/fee-policies.test.ts"],
    mutations: [
      {
        name: "a fee leaves the merchant nothing",
        find: "amount > 0n ? amount - 1n : 0n",
        replace: "amount",
      },
      {
        name: "the percentage of a fee is rounded up",
        find: "(amount * BigInt(basisPoints)) / 10_000n",
        replace: "(amount * BigInt(basisPoints) + 9_999n) / 10_000n",
      },
      {
        name: "the fixed part of a fee is rounded down",
        find: "(scaled + 10n ** BigInt(MICROS) - 1n) / 10n ** BigInt(MICROS)",
        replace: "scaled / 10n ** BigInt(MICROS)",
      },
    ],
  },
  {
    file: "payments/money.ts",
    tests: ["test/unit/payments/money.test.ts"],
    mutations: [
      {
        name: "an amount at a rate is rounded down",
        find: "(dividend + divisor - 1n) / divisor",
        replace: "dividend / divisor",
      },
      {
        name: "an amount in fewer decimals is rounded down",
        find: "(value + step - 1n) / step",
        replace: "value / step",
      },
    ],
  },
  {
    file: "db/queries/ledger-groups.ts",
    tests: ["test/integration/db/queries/ledger-groups.test.ts"],
    mutations: [
      {
        name: "a merchant's balance goes below zero",
        find: '.where("amount", ">=", debit.amount)',
        replace: "",
      },
      {
        name: "a debit is taken from every asset of the merchant",
        find: '.where("asset", "=", debit.asset)',
        replace: "",
      },
      {
        name: "credits of one merchant get the same settlement number",
        find: "next_settlement = b.next_settlement + ${settlements}",
        replace: "next_settlement = b.next_settlement",
      },
      {
        name: "a credit replaces the merchant's previous balance",
        find: "set amount = b.amount + excluded.amount",
        replace: "set amount = excluded.amount",
      },
      {
        name: "a movement that is already booked counts as new",
        find: "return groups.filter(({ kind, subject }) => !known.has(`${kind} ${subject}`));",
        replace: "return [...groups];",
        tests: ["test/integration/transfers/evm/deep-reorgs.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/exceptions.ts",
    tests: ["test/integration/payments/accounting/exceptions.test.ts"],
    mutations: [
      {
        name: "money of an unknown sender is sent back to an empty address",
        find: "nullif(s.payer, '') as payer",
        replace: "s.payer",
      },
      {
        name: "the exception of a payout whose block a reorg has replaced is not found",
        find: "and b.authorization_nonce = ${s}.authorization_nonce",
        replace: "and not b.orphaned and b.authorization_nonce = ${s}.authorization_nonce",
        tests: ["test/integration/payments/payouts/reorged-payouts.test.ts"],
      },
    ],
  },
  {
    file: "transfers/book-unmatched.ts",
    tests: ["test/integration/payments/accounting/deep-reorgs.test.ts"],
    mutations: [
      {
        name: "a deposit that a reorg below the final height has moved is booked twice",
        find: "const moved = await moveBookings(db, chain.chain, locked);",
        replace: "const moved: typeof locked = [];",
      },
      {
        name: "money that pays a payment is booked as an exception as well",
        find: "unmatched.filter((row) => !paying.includes(row))",
        replace: "unmatched",
        tests: ["test/integration/payments/lifecycle/replaced-when-final.test.ts"],
      },
    ],
  },
  {
    file: "transfers/pay-with-unmatched.ts",
    tests: ["test/integration/payments/lifecycle/replaced-when-final.test.ts"],
    mutations: [
      {
        name: "equal movements that are final together pay one transfer",
        find: "open.delete(transfer);",
        replace: "",
        justification:
          "the unique key of a transfer's movement rejects the second one, and each movement is then booked separately",
      },
      {
        name: "money beside an accepted transfer that was never sent pays nothing when it is final",
        find: "{ isFinal: true }",
        replace: "{ isFinal: false }",
      },
      {
        name: "money that was late for its quote pays a confirm that was accepted after it had moved",
        find: " && !earlier.has(id)",
        replace: "",
        tests: ["test/integration/payments/options/quote-rows.test.ts"],
      },
    ],
  },
  {
    file: "transfers/move-bookings.ts",
    tests: ["test/unit/transfers/move-bookings.test.ts"],
    mutations: [
      {
        name: "two equal deposits of one transaction share one booking after a reorg",
        find: "open.delete(orphan);",
        replace: "",
      },
      {
        name: "a deposit takes the booking of an equal one in another transaction",
        find: "one.tx_hash === movement.tx_hash && isSameMovement(one, movement)",
        replace: "isSameMovement(one, movement)",
      },
      {
        name: "a transaction that moves another amount after a reorg is not booked",
        find: "one.tx_hash === movement.tx_hash && isSameMovement(one, movement)",
        replace: "one.tx_hash === movement.tx_hash",
      },
      {
        name: "equal payouts of one transaction exchange their bookings after a reorg",
        find: "same.find((one) => one.authorization_nonce === movement.authorization_nonce) ?? same[0]",
        replace: "same[0]",
      },
      {
        name: "a booking that a reorg has moved stays with the former block as well",
        find: "await unmarkBooked(db, orphans);",
        replace: "",
        tests: ["test/integration/payments/accounting/deep-reorgs.test.ts"],
      },
    ],
  },
  {
    file: "payments/accounting/resolve-exceptions.ts",
    tests: ["test/integration/payments/accounting/exceptions.test.ts"],
    mutations: [
      {
        name: "money that left the treasury is given to a merchant",
        find: "if (amount < 0n && !isOutgoing)",
        replace: "if (false)",
      },
      {
        name: "after a restore, money is assigned although the chain shows that it was returned",
        find: '    if (returned) return refuse("invalid_state", returned);\n',
        replace: "",
        tests: ["test/integration/payments/accounting/restored-returns.test.ts"],
      },
      {
        name: "after a restore, money is booked as the operator's although the chain shows that it was returned",
        find: 'return returned ? refuse("invalid_state", returned) : done(',
        replace: "return done(",
        tests: ["test/integration/payments/accounting/restored-returns.test.ts"],
      },
      {
        name: "an exception is given to a test payment",
        find: 'payment?.mode !== "live"',
        replace: "!payment",
        tests: ["test/integration/payments/accounting/booking-guards.test.ts"],
      },
      {
        name: "money is assigned to a payment that it does not name",
        find: "if (exception.payment_id !== payment.id && !args.unnamed)",
        replace: "if (false)",
        tests: ["test/integration/signer/claimed-exceptions.test.ts"],
      },
      {
        name: "money is returned to the zero address",
        find: "if (error) return refuse",
        replace: "if (false) return refuse",
      },
    ],
  },
  {
    file: "payments/accounting/corrections.ts",
    tests: ["test/integration/ops/admin/admin-commands.test.ts"],
    mutations: [
      {
        name: "a correction is booked on a merchant's balance",
        find: "if (!byHand.includes(account) && !isLane(account))",
        replace: "if (account === undefined)",
        tests: ["test/integration/payments/accounting/booking-guards.test.ts"],
      },
    ],
  },
];
