// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const compare = ["test/unit/chains/solana/compare.test.ts"];

/** Transfers on Solana, and the comparison of what a wallet hands back with what it was asked to sign. */
export const solanaMutations: readonly MutationGroup[] = [
  {
    file: "chains/solana/compare.ts",
    tests: compare,
    mutations: [
      { name: "lookup tables may hide accounts", find: "parsed.lookupTables > 0", replace: "false" },
      { name: "another fee payer is let through", find: "parsed.feePayer !== feePayer", replace: "false" },
      {
        name: "a third account may sign",
        find: "signer !== feePayer && signer !== payer",
        replace: "false",
      },
      {
        name: "the payer of a transaction may be an account of ours",
        find: "if (payer === feePayer || ours.has(payer) || ours.has(findTokenAccount(payer, mint, program))) {",
        replace: "if (payer === feePayer) {",
      },
      {
        name: "instructions that we did not build are let through",
        find: "for (const one of rest.filter((it) => !kindOf(it))) {",
        replace: "for (const one of rest.filter(() => false)) {",
      },
      {
        name: "an instruction may come twice",
        find: "if (found.length !== ours.length) {",
        replace: "if (found.length < ours.length) {",
      },
      {
        name: "an instruction may call another program of its kind",
        find: "if (found.program !== built.program) reasons",
        replace: "if (false) reasons",
      },
      {
        name: "an instruction may name further accounts",
        find: "if (found.accounts.length !== built.accounts.length) {",
        replace: "if (found.accounts.length < built.accounts.length) {",
      },
      {
        name: "an instruction may name other accounts",
        find: "other !== undefined && other !== address",
        replace: "false",
      },
      {
        name: "a transfer may move another amount, and a memo say something else",
        find: "Buffer.compare(found.data, built.data) !== 0",
        replace: "false",
      },
      {
        name: "our instructions may come in another order",
        find: "reasons.length === 0 && order(rest) !== order(built)",
        replace: "false",
      },
      { name: "an account may be listed twice", find: "if (seen.has(address)) reasons", replace: "if (false) reasons" },
      {
        name: "accounts may be listed that no instruction uses",
        find: "address !== parsed.feePayer && !used.has(address) && !programs.has(address)",
        replace: "false",
      },
      {
        name: "an account of ours may stand where we did not put it",
        find: "isProtected(address) && !placed.has(address)",
        replace: "false",
      },
      {
        name: "an account may be readonly that has to be written",
        find: "written.has(address) && !writable",
        replace: "false",
      },
      {
        name: "an account may be writable that only has to be read",
        find: "writable && !written.has(address) && address !== expected.payer",
        replace: "false",
      },
      {
        name: "a wrong signature is let through",
        find: "!empty && !verifySignature(signer, parsed.message, signature)",
        replace: "false",
      },
      {
        name: "a missing signature of the payer is let through",
        find: "empty && signer === payer",
        replace: "false",
      },
    ],
  },
  {
    file: "chains/solana/wallet-extras.ts",
    tests: compare,
    mutations: [
      { name: "a wallet may set any priority fee", find: "if (fee > maxFee) reasons", replace: "if (false) reasons" },
      {
        name: "the priority fee is rounded down before it is compared with the cap",
        find: "* price + MICRO - 1n) / MICRO",
        replace: "* price) / MICRO",
      },
      {
        name: "a wallet may set the unit limit twice",
        find: "if (limits.length > 1) reasons",
        replace: "if (false) reasons",
      },
      { name: "a wallet may add any number of guards", find: "guards.length > MOST_GUARDS", replace: "false" },
      {
        name: "a guard may do more than assert",
        find: "kind < FIRST_ASSERTION || kind > LAST_ASSERTION",
        replace: "false",
      },
      {
        name: "a guard may name an account of ours",
        find: "for (const address of new Set(accounts.filter(isProtected))) {",
        replace: "for (const address of new Set<string>()) {",
      },
    ],
  },
  {
    file: "transfers/solana/dead.ts",
    tests: ["test/rooms/transfers/solana-submit.test.ts"],
    mutations: [
      {
        name: "a transaction on Solana is declared dead one height early",
        find: "last !== null && last < final.height",
        replace: "last !== null && last <= final.height",
      },
      {
        name: "a transaction that was not submitted is declared dead one height early",
        find: "at: final.height - 1,",
        replace: "at: final.height,",
      },
      {
        name: "a transaction on Solana is dead although an endpoint may have seen it",
        find: "const never = await listNeverSeen(chain, dead, { since: Math.max(final.slot, slot) });",
        replace: "const never = new Set(dead);",
      },
      {
        name: "a payout is dead by a durable nonce that is older than its own",
        find: " && slot >= (nonce_slot ?? 0)",
        replace: "",
        tests: ["test/rooms/transfers/solana-lagging.test.ts"],
      },
      {
        name: "a payout is dead although its durable nonce is still the same",
        find: "nonce !== undefined && nonce !== nonce_value &&",
        replace: "nonce !== undefined &&",
        tests: ["test/rooms/payments/solana-payouts.test.ts"],
      },
      {
        name: "a payment is ended as never sent although the rows may have forgotten it",
        find: "ready.length === 0 || (await findReadEpoch(deps, chain.chain)) === undefined",
        replace: "ready.length === 0",
        tests: ["test/rooms/payments/solana-failover.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/payouts.ts",
    tests: ["test/rooms/payments/solana-restored.test.ts"],
    mutations: [
      {
        name: "a payout on Solana is sent although the history shows it as made",
        find: "await dropMade(deps, rows, adopted)",
        replace: "rows",
      },
      {
        name: "a payout on Solana is sent although its marker is there",
        find: "return rows.filter((row) => !marked.has(row.authorization_nonce));",
        replace: "return [...rows];",
        tests: ["test/rooms/payments/solana-restored.test.ts", "test/rooms/payments/solana-failover.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/receivers.ts",
    tests: ["test/rooms/payments/solana-payouts.test.ts"],
    mutations: [
      {
        name: "a token account that its owner has closed is made again at our expense",
        find: "return wasMade ? ",
        replace: "return false ? ",
      },
      {
        name: "a payout goes to an account that is a token account itself",
        find: "owner && programs.has(owner.owner)",
        replace: "false",
      },
      {
        name: "a payout is sent to a frozen account",
        find: "account ? findDestinationFault(account, wanted) :",
        replace: "account ? undefined :",
        justification: "the simulation before the send refuses it as well, with the token program's own reason",
        tests: ["test/rooms/payments/solana-payouts.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/store.ts",
    tests: ["test/rooms/payments/solana-payouts.test.ts", "test/rooms/payments/solana-verdicts.test.ts"],
    mutations: [
      {
        name: "a transaction on Solana is stored for transfers that are not ready any more",
        find: "signings.filter(({ transferIds }) => transferIds.every((id) => ready.has(id)))",
        replace: "[...signings]",
        tests: ["test/rooms/transfers/solana-store.test.ts"],
      },
      {
        name: "bytes on Solana are sent that could not be stored",
        find: "if ((await storeTransactions(db, rows)) !== rows.length) throw new Overtaken();",
        replace: "await storeTransactions(db, rows);",
        tests: ["test/rooms/transfers/solana-store.test.ts"],
      },
      {
        name: "what was signed before a step back of the database is sent on Solana",
        find: "epoch === undefined ? undefined : await deps.epoch.pass(db, epoch)",
        replace: "undefined",
        tests: ["test/rooms/payments/solana-restored.test.ts", "test/rooms/payments/solana-failover.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/submit.ts",
    tests: ["test/rooms/payments/solana-verdicts.test.ts"],
    mutations: [
      {
        name: "a screened payer's transaction is signed and sent on Solana",
        find: "for (const row of payments.filter(({ payer }) => !refused.has(payer))) {",
        replace: "for (const row of payments) {",
      },
    ],
  },
  {
    file: "transfers/solana/statuses.ts",
    tests: ["test/rooms/transfers/solana-submit.test.ts"],
    mutations: [
      {
        name: "a transaction that failed on Solana counts as having moved its money",
        find: "const good = some.filter(({ status }) => !status.error);",
        replace: "const good = some;",
      },
      {
        name: "a payment on Solana is confirmed before its slot is as deep as the network's entry says",
        find: 'return status.depth === "finalized" || status.depth === chain.network.finality;',
        replace: 'return status.depth !== "processed";',
        justification:
          "endpoints are asked for the depth once more before anything is booked (transfers/solana/agreement.ts)",
        tests: ["test/rooms/transfers/solana-watch.test.ts"],
      },
      {
        name: "a transaction whose slot has gone stays included",
        find: "await unmarkLanded(db, { chain: chain.chain, hashes });",
        replace: "",
        tests: ["test/rooms/transfers/solana-watch.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/turn.ts",
    tests: ["test/rooms/transfers/solana-history.test.ts"],
    mutations: [
      {
        name: "a slot is called booked before the history up to it was read",
        find: "const booked = final && Math.min(final.slot, history?.readSlot ?? 0);",
        replace: "const booked = final?.slot;",
      },
    ],
  },
];
