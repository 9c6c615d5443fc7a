// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const stolen = ["test/integration/signer/stolen-database.test.ts"];
const returns = ["test/integration/signer/returns.test.ts"];
const rules = ["test/unit/signer/rules.test.ts"];
const limits = ["test/integration/signer/limits.test.ts"];

/** Mutations of the signer: what it verifies on chain, its rules, and its records. */
export const signerMutations: readonly MutationGroup[] = [
  {
    file: "signer/verify-deposits.ts",
    tests: stolen,
    mutations: [
      {
        name: "a deposit counts for any payment and merchant",
        find: "movement.authorizationNonce !== deriveNonce(deployment, paymentKey({ merchantId, paymentId }))",
        replace: "movement.authorizationNonce === null",
      },
      {
        name: "a deposit counts before it is final",
        find: 'if (transaction.state === "not_final") return refuse("not_final");',
        replace: 'if (transaction.state === "not_final") return refuse("deposit_not_found");',
        tests: ["test/integration/signer/signer-down.test.ts"],
      },
    ],
  },
  {
    file: "signer/read-transactions.ts",
    tests: ["test/integration/signer/large-claims.test.ts"],
    mutations: [
      {
        name: "a transaction that cannot be read holds up the others",
        find: "if (together) return together;",
        replace: "return together ?? new Map();",
      },
    ],
  },
  {
    file: "signer/rebuild.ts",
    tests: ["test/integration/signer/rebuild.test.ts"],
    mutations: [
      {
        name: "payouts are recorded while lost signatures can still move money",
        find: "const isComplete = unattributed.length === 0 && held.length === 0;",
        replace: "const isComplete = unattributed.length === 0;",
      },
      {
        name: "a store with payouts retires its treasuries",
        find: "countRecords(store).payouts > 0 && !chains.every((chain) => isRetired(store, chain))",
        replace: "countRecords(store).payouts < 0",
      },
    ],
  },
  {
    file: "signer/retired-treasuries.ts",
    tests: ["test/integration/signer/rebuild.test.ts"],
    mutations: [
      {
        name: "a retired treasury signs again",
        find: 'return isRetired(store, of) ? refuse("treasury_retired") : undefined;',
        replace: "return undefined;",
      },
      {
        name: "a store whose payouts are not rebuilt signs",
        find: 'if (open) return refuse("rebuild_unfinished");',
        replace: "void open;",
      },
    ],
  },
  {
    file: "signer/move-excess.ts",
    tests: ["test/integration/signer/cold-transfers-solana.test.ts"],
    mutations: [
      {
        name: "the treasury signs a transaction for an address that the limits file does not name as the cold address",
        find: 'if (moved === undefined || "reason" in moved || moved.receiver !== of.receiver) return false;',
        replace: 'if (moved === undefined || "reason" in moved) return false;',
      },
      {
        name: "the treasury signs a transaction with another amount for the cold address",
        find: "return last?.amount === of.amount && last.receiver === of.receiver &&",
        replace: "return last?.receiver === of.receiver &&",
      },
    ],
  },
  {
    file: "signer/move-excess.ts",
    tests: ["test/integration/signer/cold-transfers.test.ts"],
    mutations: [
      {
        name: "each request records one more transfer to the cold address",
        find: "const open = isMade && newest?.number === last?.number ? undefined : newest;",
        replace: "const open = undefined as typeof newest;",
      },
      {
        name: "a concurrent request records a second transfer to the cold address",
        find: "isMade && newest?.number === last?.number ? undefined : newest",
        replace: "last === undefined || isMade ? undefined : newest",
      },
      {
        name: "what unfinished payouts need moves to the cold address",
        find: "const needed = recent > pending ? recent : pending;",
        replace: "const needed = pending > 0n ? recent : recent;",
      },
      {
        name: "what was signed within the last hour moves to the cold address",
        find: "const needed = recent > pending ? recent : pending;",
        replace: "const needed = recent > 0n ? pending : pending;",
      },
      {
        name: "a transfer to a former cold address is signed",
        find: "if (isCovered && open.receiver === receiver) return open;",
        replace: "if (open) return open;",
      },
    ],
  },
  {
    file: "signer/authorize-payouts.ts",
    tests: ["test/integration/signer/rotated-treasury.test.ts"],
    mutations: [
      {
        name: "a payout of a former treasury is signed again",
        find: 'if (isOfOtherTreasury(deps.store, { nonce, asset: payout.asset, treasury })) return refuse("treasury_changed");',
        replace: "void isOfOtherTreasury;",
      },
    ],
  },
  {
    file: "signer/authorize-payouts.ts",
    tests: stolen,
    mutations: [
      {
        name: "a destination is not checked",
        find: "if (refused) return refuse(refused);",
        replace: "",
      },
      {
        name: "a pause stops nothing",
        find: 'if (limits.paused) return refuse("paused");',
        replace: "",
        tests: limits,
      },
    ],
  },
  {
    file: "signer/records.ts",
    tests: stolen,
    mutations: [
      {
        name: "payouts do not reduce a merchant's funds",
        find: "String(sumPayouts(store, { asset, merchantId }) + counted)",
        replace: "String(sumPayouts(store, { asset, merchantId }))",
      },
    ],
  },
  {
    file: "signer/rules.ts",
    tests: rules,
    mutations: [
      {
        name: "any account can receive a refund",
        find: 'of.deposits.some(({ payer }) => payer === of.receiver) ? undefined : "receiver_not_payer"',
        replace: "undefined",
      },
      {
        name: "refunds can exceed what was paid",
        find: "paid < of.refunded + of.increase",
        replace: "paid < of.increase",
      },
    ],
  },
  {
    file: "signer/verify-returns.ts",
    tests: returns,
    mutations: [
      {
        name: "one operator approves a return",
        find: "if (approvers.length >= REQUIRED_APPROVALS) return undefined;",
        replace: "if (approvers.length >= 1) return undefined;",
      },
      {
        name: "a return goes to any account",
        find: 'if (canonicalAddress(chain.chain, movement.payer) !== payout.receiver) return refuse("receiver_not_payer");',
        replace: "",
      },
      {
        name: "a return exceeds what came",
        find: 'return payout.amount > movement.amount ? refuse("funds_short", "the return exceeds what came") : undefined;',
        replace: "return undefined;",
      },
    ],
  },
];
