// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const compare = ["test/unit/chains/solana/compare-transaction.test.ts"];
const raisedFees = ["test/integration/transfers/solana/raise-fees.test.ts"];
const lostSlots = ["test/integration/transfers/solana/lost-slots.test.ts"];
const waits = ["test/unit/transfers/solana/second-endpoint.test.ts"];
const stuckFinal = ["test/integration/transfers/solana/final-states.test.ts"];
const startCluster = ["test/integration/transfers/solana/start-cluster.test.ts"];
const closings = ["test/integration/signer/marker-closings-solana.test.ts"];

/** Mutations of transfers on Solana, and of the comparison of a signed transaction with the requested one. */
export const solanaMutations: readonly MutationGroup[] = [
  {
    file: "chains/solana/compare-transaction.ts",
    tests: compare,
    mutations: [
      { name: "lookup tables may hide accounts", find: "parsed.lookupTables > 0", replace: "false" },
      { name: "another fee payer is let through", find: "parsed.feePayer !== feePayer", replace: "false" },
      {
        name: "a third account can sign",
        find: "signer !== feePayer && signer !== payer",
        replace: "false",
      },
      {
        name: "the payer can be one of the operator's accounts",
        find: "if (payer === feePayer || ours.has(payer) || ours.has(findTokenAccount(payer, mint, program))) {",
        replace: "if (payer === feePayer) {",
      },
      {
        name: "instructions that the service did not build are accepted",
        find: "for (const one of rest.filter((it) => !kindOf(it))) {",
        replace: "for (const one of rest.filter(() => false)) {",
      },
      {
        name: "an instruction can occur twice",
        find: "if (found.length !== ours.length) {",
        replace: "if (found.length < ours.length) {",
      },
      {
        name: "an instruction can call another program of its kind",
        find: "if (found.program !== built.program) reasons",
        replace: "if (false) reasons",
      },
      {
        name: "an instruction can name additional accounts",
        find: "if (found.accounts.length !== built.accounts.length) {",
        replace: "if (found.accounts.length < built.accounts.length) {",
      },
      {
        name: "an instruction can name other accounts",
        find: "other !== undefined && other !== address",
        replace: "false",
      },
      {
        name: "a transfer can have another amount and a memo another text",
        find: "Buffer.compare(found.data, built.data) !== 0",
        replace: "false",
      },
      {
        name: "the service's instructions can have another order",
        find: "reasons.length === 0 && order(rest) !== order(built)",
        replace: "false",
      },
      { name: "an account may be listed twice", find: "if (seen.has(address)) reasons", replace: "if (false) reasons" },
      {
        name: "accounts that no instruction uses can be listed",
        find: "address !== parsed.feePayer && !used.has(address) && !programs.has(address)",
        replace: "false",
      },
      {
        name: "an operator's account can occur where the service did not put it",
        find: "isProtected(address) && !placed.has(address)",
        replace: "false",
      },
      {
        name: "an account that must be writable can be read-only",
        find: "written.has(address) && !writable",
        replace: "false",
      },
      {
        name: "an account that must be read-only can be writable",
        find: "writable && !written.has(address) && address !== expected.payer",
        replace: "false",
      },
      {
        name: "a wrong signature is accepted",
        find: "!empty && !(key && verifyWithKey(key, parsed.message, signature))",
        replace: "false",
      },
      {
        name: "a missing signature of the payer is accepted",
        find: "empty && signer === payer",
        replace: "false",
      },
    ],
  },
  {
    file: "chains/solana/wallet-instructions.ts",
    tests: compare,
    mutations: [
      { name: "a wallet may set any priority fee", find: "if (fee > maxFee) reasons", replace: "if (false) reasons" },
      {
        name: "the priority fee is rounded down before it is compared with the cap",
        find: "* price + MICRO - 1n) / MICRO",
        replace: "* price) / MICRO",
      },
      {
        name: "a wallet can set the unit limit twice",
        find: "if (limits.length > 1) reasons",
        replace: "if (false) reasons",
      },
    ],
  },
  {
    file: "chains/solana/lighthouse-guards.ts",
    tests: compare,
    mutations: [
      { name: "a wallet may add any number of guards", find: "guards.length > MOST_GUARDS", replace: "false" },
      {
        name: "a guard instruction can have bytes that are not of its form",
        find: "known.layout(data, 1) !== data.length",
        replace: "false",
      },
      {
        name: "a guard instruction can name more accounts than its form has",
        find: "accounts.length !== known.accounts",
        replace: "false",
      },
      {
        name: "a guard instruction of any form can name the fee payer",
        find: "!known.readsFeePayer && accounts.includes(feePayer)",
        replace: "false",
      },
      {
        name: "a guard instruction can call another program to log",
        find: "oneOf(bytes(0), bytes(0), bytes(0), () => undefined, bytes(0), bytes(0))",
        replace: "bytes(1)",
      },
    ],
  },
  {
    file: "transfers/solana/plain-payments.ts",
    tests: ["test/integration/payments/lifecycle/solana-verification.test.ts"],
    mutations: [
      {
        name: "a payer's account with too little or that is frozen is accepted without a simulation",
        find: "validateSourceAccount(source, { mint, owner: payer, amount }) === undefined &&",
        replace: "",
      },
      {
        name: "a relayer that cannot pay the fee is accepted without a simulation",
        find: "lamports >= LEAST_LAMPORTS + chain.network.maxPriorityFee",
        replace: "lamports >= 0n",
      },
      {
        name: "a transaction with too few compute units is accepted without a simulation",
        find: "return readBudget(parsed).units >= limitUnits(known.units, Number(MAX_COMPUTE_UNITS));",
        replace: "return true;",
      },
      {
        name: "an expired blockhash is accepted without a simulation",
        find: "return slot !== undefined && canPay(chain, one, state) ? [[one, slot]] : [];",
        replace: "return canPay(chain, one, state) ? [[one, slot ?? 0]] : [];",
      },
    ],
  },
  {
    file: "chains/solana/treasury-movements.ts",
    tests: ["test/unit/chains/solana/treasury-movements.test.ts"],
    mutations: [
      {
        name: "an answer without the addresses of lookup tables hides a movement",
        find: "if (addressTableLookups.length > 0 && !meta.loadedAddresses)",
        replace: "if (false)",
      },
      {
        name: "a deposit from an account that is given to the treasury looks like a payout",
        find: " && owner !== treasury.owner;",
        replace: ";",
      },
      {
        name: "the owner to whom an account is given afterwards counts as the payer",
        find: "(owners.get(address) ?? owner) === owner && ",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/solana/search-expired.ts",
    tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
    mutations: [
      {
        name: "a Solana transaction is marked expired one height early",
        find: "(lastOf(row) ?? height) < height",
        replace: "(lastOf(row) ?? height + 1) <= height",
      },
      {
        name: "one endpoint's height ends an unsubmitted transaction",
        find: "await keepExpired(chain, ready.filter(isPast), { final, lastOf: findReportedHeight })",
        replace: "ready.filter(isPast)",
        tests: ["test/integration/transfers/solana/expiry-heights.test.ts"],
      },
      {
        name: "a last height that one endpoint reports too low ends a transaction in flight",
        find: "lastOf: findExpiryHeight",
        replace: "lastOf: ({ last_valid_height: last }) => last ?? undefined",
        tests: ["test/integration/transfers/solana/expiry-heights.test.ts"],
      },
      {
        name: "one endpoint's height ends a transaction in flight",
        find: "Math.min(final.height, await readAgreedHeight(chain))",
        replace: "final.height",
      },
      {
        name: "a payment that was never sent ends before the history is listed that may show its buyer's own transfer",
        find: "Math.min(final.height, listedHeight)",
        replace: "final.height",
        tests: ["test/integration/transfers/solana/late-signing.test.ts"],
      },
      {
        name: "a payment that was never sent long ago ends before the history is listed",
        find: "final.height - listedHeight < MAX_UNLISTED_SLOTS",
        replace: "true",
        tests: ["test/integration/transfers/solana/late-signing.test.ts"],
      },
      {
        name: "a last height that one endpoint reported too high keeps a payment in processing that was never sent",
        find: ", ...(await keepWithExpiredBlockhash(chain, long, ({ signature }) => signature))",
        replace: "",
        tests: ["test/integration/transfers/solana/late-signing.test.ts"],
      },
      {
        name: "heights that one of two endpoints reports far too high keep a lost payment in processing",
        find: ", ...(await listLongExpired(deps, chain, unseen, past))",
        replace: "",
        tests: ["test/integration/transfers/solana/expiry-heights.test.ts"],
      },
      {
        name: "a Solana transaction is marked expired although an endpoint may have seen it",
        find: "const never = await listNeverIncluded(deps, chain, [...expired, ...usedUp], args);",
        replace: "const never = new Set([...expired, ...usedUp].map(({ hash }) => hash));",
      },
      {
        name: "a payout is marked expired by a durable nonce that is older than its own",
        find: " && slot >= findNonceSlot(row, final)",
        replace: "",
        tests: ["test/integration/transfers/solana/lagging-endpoints.test.ts"],
      },
      {
        name: "a payout is marked expired although its durable nonce has not changed",
        find: "nonce !== undefined && nonce !== row.nonce_value &&",
        replace: "nonce !== undefined &&",
        tests: ["test/integration/payments/payouts/solana-payouts.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/end-expired.ts",
    tests: ["test/integration/payments/payouts/solana-failover.test.ts"],
    mutations: [
      {
        name: "a payment ends as never sent although its rows may be lost",
        find: "rows.length === 0 || (await findReadEpoch(deps, chain.chain)) === undefined",
        replace: "rows.length === 0",
      },
    ],
  },
  {
    file: "transfers/solana/submit-payouts.ts",
    tests: ["test/integration/payments/payouts/solana-restored-payouts.test.ts"],
    mutations: [
      {
        name: "a Solana payout is sent although the history already contains it",
        find: "await keepUnpaidPayouts(deps, rows, adopted)",
        replace: "rows",
      },
      {
        name: "a Solana payout is sent although its marker exists",
        find: "return rows.filter((row) => !marked.has(row.authorization_nonce));",
        replace: "return [...rows];",
        tests: [
          "test/integration/payments/payouts/solana-restored-payouts.test.ts",
          "test/integration/payments/payouts/solana-failover.test.ts",
        ],
      },
    ],
  },
  {
    file: "transfers/solana/store-listed.ts",
    tests: ["test/integration/transfers/solana/omitted-entries.test.ts"],
    mutations: [
      {
        name: "a transaction that an endpoint lists with a slot from before its history holds what it names for ever",
        find: "fresh.filter(({ slot }) => slot > since)",
        replace: "fresh.filter(({ slot }) => slot > since || since >= 0)",
        tests: ["test/integration/transfers/solana/history-errors.test.ts"],
      },
      {
        name: "a transaction that is listed again is read again",
        find: "!own.has(signature) && !observed.has(signature)",
        replace: "!own.has(signature)",
      },
      {
        name: "an endpoint that lists no memos hides which payments transactions name",
        find: "new Set([...(named.get(signature) ?? []), ...(memo.match(NONCE) ?? [])])",
        replace: "new Set(memo.match(NONCE))",
      },
    ],
  },
  {
    file: "db/queries/transfers.ts",
    tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
    mutations: [
      {
        name: "a payment is sent although an unread transaction names it",
        find: '.where(sql<boolean>`not ${isNamedByUnread("transfer")}`)',
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/expired-transfers.ts",
    tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
    mutations: [
      {
        name: "a payment ends as never sent although an unread transaction names it",
        find: '.where(sql<boolean>`not ${isNamedByUnread("transfer")}`)',
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/payment-moves.ts",
    tests: ["test/integration/transfers/solana/history-errors.test.ts"],
    mutations: [
      {
        name: "a payment expires although an unread transaction names it",
        find: 'and not ${isNamedByUnread("o")}',
        replace: "",
      },
    ],
  },
  {
    file: "transfers/solana/read-history.ts",
    tests: ["test/integration/transfers/solana/history-errors.test.ts"],
    mutations: [
      {
        name: "the first endpoint's final slot alone decides how far the history is listed",
        find: "(await readFinalState(deps, chain)).slot",
        replace: '(await import("../../chains/solana/cluster-state.ts").then((one) => one.readFinal(chain))).slot',
        tests: stuckFinal,
      },
      {
        name: "an attempt to compare counts although no endpoint answers any call",
        find: "if (cursor && account.isReachable)",
        replace: "if (cursor)",
        tests: ["test/integration/transfers/solana/unanswered-entries.test.ts"],
      },
      {
        name: "an attempt counts although no endpoint answers any call",
        find: "counts: account.isReachable || !isUnreachable(reading.error)",
        replace: "counts: true",
      },
    ],
  },
  {
    file: "chains/solana/priority-fees.ts",
    tests: ["test/unit/chains/solana/priority-fees.test.ts"],
    mutations: [
      {
        name: "a Solana transaction offers no priority fee where endpoints report none",
        find: "const wanted = price > least ? price : least;",
        replace: "const wanted = price;",
      },
    ],
  },
  {
    file: "transfers/solana/prepare-receivers.ts",
    tests: ["test/integration/payments/payouts/solana-payouts.test.ts"],
    mutations: [
      {
        name: "a token account that its owner closed is created again at the operator's expense",
        find: "return wasMade ? ",
        replace: "return false ? ",
      },
      {
        name: "a payout is sent to an account that is itself a token account",
        find: "owner && programs.has(owner.owner)",
        replace: "false",
      },
      {
        name: "a payout is sent to a frozen account",
        find: "account ? validateDestinationAccount(account, wanted) :",
        replace: "account ? undefined :",
        justification: "the simulation before the broadcast rejects it as well, with the token program's own error",
        tests: ["test/integration/payments/payouts/solana-payouts.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/store-transactions.ts",
    tests: [
      "test/integration/payments/payouts/solana-payouts.test.ts",
      "test/integration/payments/lifecycle/solana-verification.test.ts",
    ],
    mutations: [
      {
        name: "a Solana transaction is stored for transfers that are no longer ready",
        find: "signings.filter(({ transfers }) => transfers.every(({ id }) => ready.has(id)))",
        replace: "[...signings]",
        tests: ["test/integration/transfers/solana/store-transactions.test.ts"],
      },
      {
        name: "a Solana transaction that could not be stored is sent",
        find: "if ((await storeTransactions(db, rows)) !== rows.length) return undefined;",
        replace: "await storeTransactions(db, rows);",
        tests: ["test/integration/transfers/solana/store-transactions.test.ts"],
      },
      {
        name: "a Solana transaction that was signed before the database lost commits is sent",
        find: "const passed = await deps.epoch.pass(db, epoch);",
        replace: "const passed = { ok: true as const, afterCommit: async () => undefined };",
        tests: [
          "test/integration/payments/payouts/solana-restored-payouts.test.ts",
          "test/integration/payments/payouts/solana-failover.test.ts",
        ],
      },
    ],
  },
  {
    file: "transfers/solana/submit-ready.ts",
    tests: ["test/integration/payments/lifecycle/solana-verification.test.ts"],
    mutations: [
      {
        name: "a screened payer's Solana transaction is signed and sent",
        find: "const wanted = payments.filter(({ payer }) => !refused.has(payer));",
        replace: "const wanted = payments;",
      },
      {
        name: "payments wait until an endpoint is asked for the blockhash of an earlier one",
        find: "const late = wanted.filter(({ created_at: at }) => at < since);",
        replace: "const late = wanted;",
        tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
      },
      {
        name: "a hundred payments that have waited keep all others waiting while an endpoint is asked about them",
        find: 'isBehind ? await ready(["payment"], since) : []',
        replace: "[] as SolanaTransferRow[]",
        tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/late-payments.ts",
    tests: ["test/integration/transfers/solana/late-signing.test.ts"],
    mutations: [
      {
        name: "a transfer that waited is signed although its buyer's own transfer is confirmed",
        find: "nonces?.has(row.authorization_nonce)",
        replace: "false",
      },
      {
        name: "a transfer that waited is signed although its buyer's own transfer is read and waits to be booked",
        find: "await listPaidBeside(deps.db, { ids: valid.map(({ id }) => id), now: deps.now() })",
        replace: "new Set<string>()",
      },
      {
        name: "a transfer that waited is signed while no endpoint lists what may name it",
        find: "const signable = nonces ? valid.filter((row) => !named.includes(row)) : [];",
        replace: "const signable = valid.filter((row) => !named.includes(row));",
      },
      {
        name: "a transfer that waited is signed although its buyer's own transfer in another token is confirmed",
        find: "[...chain.tokens.values()].map(",
        replace: "[...chain.tokens.values()].slice(0, 1).map(",
      },
      {
        name: "a transfer that waited is signed although its buyer's own transfer is on a later page",
        find: "count < MAX_PAGES",
        replace: "count < 1",
      },
    ],
  },
  {
    file: "transfers/solana/expired-blockhashes.ts",
    tests: ["test/integration/transfers/solana/late-signing.test.ts"],
    mutations: [
      {
        name: "a transfer whose blockhash expired while no worker ran is signed, and its buyer's own transfer pays nothing",
        find: "const expired = rows.filter(isExpired);",
        replace: "const expired: SolanaTransferRow[] = [];",
      },
      {
        name: "one of two endpoints keeps a late transfer from being sent",
        find: "(invalid > 0 && invalid === of.length)",
        replace: "invalid > 0",
      },
      {
        name: "a late transfer is signed while no endpoint knows whether its blockhash is valid",
        find: "reports.get(row)?.length === 0",
        replace: "false",
      },
      {
        name: "one of two endpoints ends a payment by its blockhash",
        find: "Math.min(REQUIRED_ENDPOINTS, chain.network.rpc.length)",
        replace: "1",
      },
      {
        name: "a payment ends because its blockhash is too new for the final state of a cluster that has stopped",
        find: 'const newest = await readReports(chain, rows, { bytesOf, commitment: "processed" });',
        replace: 'const newest = await readReports(chain, rows, { bytesOf, commitment: "finalized" });',
      },
      {
        name: "a payment whose transaction was lost ends while a cluster makes no slots final",
        find: "one.by === by && one.slot - slot <= MAX_FINAL_BEHIND",
        replace: "one.by === by",
        tests: ["test/integration/transfers/solana/expiry-heights.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/expiry-heights.ts",
    tests: ["test/integration/transfers/solana/expiry-heights.test.ts"],
    mutations: [
      {
        name: "a height that one of two endpoints reports too low ends a transaction in flight",
        find: "Math.max(...(near",
        replace: "Math.min(...(near",
      },
      {
        name: "a height that one of three endpoints reports far too high keeps a payment in processing",
        find: "near.length < REQUIRED_ENDPOINTS ? heights : near",
        replace: "heights",
      },
      {
        name: "a height that one of two endpoints reported too high keeps a payment in processing for ever",
        find: "signed === null || signed > final.height + MAX_ABOVE_FINAL",
        replace: "signed === null",
      },
      {
        name: "the height of the only endpoint that answers says when a transaction expires",
        find: "heights.length < Math.min(REQUIRED_ENDPOINTS, chain.network.rpc.length)",
        replace: "heights.length === 0",
      },
      {
        name: "a payout waits until the cluster reaches a slot that one endpoint has invented",
        find: "slot === null || slot > final.slot + FAR_ABOVE_FINAL ? 0 : slot",
        replace: "slot ?? 0",
        tests: ["test/integration/transfers/solana/invented-slots.test.ts"],
      },
      {
        name: "a payout that is signed again gets a slot that one endpoint has invented",
        find: "=> Math.min(slot, final.slot + FAR_ABOVE_FINAL);",
        replace: "=> Math.max(slot, final.slot);",
        tests: ["test/integration/transfers/solana/invented-slots.test.ts"],
      },
      {
        name: "a Solana transaction counts as expired while its blockhash is valid",
        find: "signed + LIFETIME_BLOCKS + MARGIN_BLOCKS",
        replace: "signed + MARGIN_BLOCKS",
      },
    ],
  },
  {
    file: "transfers/solana/never-included.ts",
    tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
    mutations: [
      {
        name: "a Solana transaction is marked expired although both endpoints have deleted its blocks",
        find: "Math.max(0, last - BLOCKS)",
        replace: "Number.MAX_SAFE_INTEGER",
      },
      {
        name: "a last height that one endpoint reports too high hides that endpoints have deleted a transaction's blocks",
        find: "Math.min(row.last_valid_height ?? 0, findExpiryHeight(row) ?? Number.MAX_SAFE_INTEGER)",
        replace: "row.last_valid_height ?? 0",
        tests: ["test/integration/transfers/solana/expiry-heights.test.ts"],
      },
      {
        name: "heights that are too high hide that endpoints have deleted a transaction's blocks",
        find: "if (final && last > final.height) return { height: 0, signedAt };",
        replace: "",
        tests: ["test/integration/transfers/solana/expiry-heights.test.ts"],
      },
    ],
  },
  {
    file: "chains/solana/never-seen.ts",
    tests: ["test/integration/chains/solana/never-seen.test.ts"],
    mutations: [
      {
        name: "one endpoint's history is enough to mark a Solana transaction expired",
        find: "goesBackTo(first, earliest)).length >= 2",
        replace: "goesBackTo(first, earliest)).length >= 1",
      },
      {
        name: "an endpoint that does not say where its history begins counts as one that keeps everything",
        find: "first && goesBackTo(first, earliest)",
        replace: "!first || goesBackTo(first, earliest)",
      },
      {
        name: "an endpoint without the first possible slot of a payout proves that it was not included",
        find: "first.slot <= earliest.slot",
        replace: "first.slot <= earliest.slot + 1",
      },
      {
        name: "the slot or height that one endpoint reported decides alone which history goes back to a signing",
        find: "if (Math.abs(aheadMs) >= MAX_CLOCK_DRIFT_MS) return aheadMs > 0;",
        replace: "",
      },
      {
        name: "an endpoint whose history begins where clocks may differ proves that a transaction was not included",
        find: "Math.abs(aheadMs) >= MAX_CLOCK_DRIFT_MS",
        replace: "aheadMs !== 0",
      },
    ],
  },
  {
    file: "chains/solana/first-block.ts",
    tests: ["test/integration/chains/solana/never-seen.test.ts"],
    mutations: [
      {
        name: "an endpoint that does not know its first slot counts as one that keeps everything",
        find: "if (slot === 0) throw error;",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/solana/second-endpoint.ts",
    tests: ["test/integration/transfers/solana/second-endpoint.test.ts"],
    mutations: [
      {
        name: "one endpoint's word ends a transaction on Solana",
        find: "if (isEnough(deps, chain, { waits, slot: status.slot, reported, agreeing, denying })) continue;",
        replace: "if (status) continue;",
      },
      {
        name: "movements on Solana that one endpoint alone has shown are not counted",
        find: "if (!isAgreed) isTrustedAlone = true;",
        replace: "",
      },
      {
        name: "one endpoint's word about a failure is enough while the other one does not answer",
        find: "status.error ? undefined : finalWaits",
        replace: "finalWaits",
      },
      {
        name: "a movement that an endpoint denies ends the wait for one that lags",
        find: "if (endpoints.denying.length > 0) return false;",
        replace: "if (endpoints.denying.length > 0) return waits?.delete(of) === null;",
        tests: waits,
      },
      {
        name: "a slot that an endpoint invents takes the wait from every later one",
        find: "Math.min(slot, second + LONGEST_LAG_SLOTS)",
        replace: "slot",
        tests: waits,
      },
      {
        name: "an endpoint that once lagged is never waited for again",
        find: "if (waits) endWait({ waits, of }, slot);",
        replace: "",
        tests: waits,
      },
      {
        name: "one of three endpoints decides alone that a transaction is final",
        find: "return hasWaited && reported === REQUIRED_ENDPOINTS;",
        replace: "return hasWaited;",
        tests: waits,
      },
      {
        name: "an endpoint that has lost a slot keeps its payments from being booked",
        find: "if (denying.length === 0 || agreeing < REQUIRED_ENDPOINTS) return denying;",
        replace: "if (denying.length >= 0) return denying;",
        tests: lostSlots,
      },
      {
        name: "one endpoint decides about a slot that the other one has lost",
        find: "if (denying.length === 0 || agreeing < REQUIRED_ENDPOINTS) return denying;",
        replace: "if (denying.length === 0) return denying;",
        tests: lostSlots,
      },
      {
        name: "an endpoint that has the block without the transaction is outvoted",
        find: "status !== undefined || !lacking.has(by)",
        replace: "status !== undefined",
        tests: lostSlots,
      },
    ],
  },
  {
    file: "transfers/solana/broadcast-transactions.ts",
    tests: ["test/integration/transfers/solana/swallowed-broadcasts.test.ts"],
    mutations: [
      {
        name: "a late transaction on Solana goes to the first endpoint that accepts it",
        find: "if (copies.length > 0 && chain.network.rpc.length > 1)",
        replace: "if (copies.length < 0)",
      },
      {
        name: "the pass waits for an endpoint that does not take its copy of a late transaction",
        find: "await Promise.race([copyBroadcasts(chain, copies), delay(COPY_WAIT_MS, undefined, { ref: false })]);",
        replace: "await copyBroadcasts(chain, copies);",
      },
    ],
  },
  {
    file: "transfers/solana/final-states.ts",
    tests: ["test/unit/transfers/solana/final-states.test.ts", ...stuckFinal],
    mutations: [
      {
        name: "a final slot that was invented once takes the wait from every later one",
        find: "endLostWait(wait, wanted);",
        replace: "",
        tests: ["test/unit/transfers/solana/final-states.test.ts"],
      },
      {
        name: "the last final slot of an endpoint that has failed counts on",
        find: "heard.has(by) || (late.has(by) && at >= since)",
        replace: "heard.has(by) || at >= since",
        tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
      },
      {
        name: "a pass waits for the final slot of an endpoint that hangs",
        find: "Promise.race([all, delay(PASS_WAIT_MS, undefined, { ref: false })])",
        replace: "all",
        tests: ["test/unit/transfers/solana/final-states.test.ts"],
      },
      {
        name: "an endpoint that always answers after a second is never heard, and a final slot that stands still stops payments",
        find: "const answers: LastAnswers = lastAnswers.get(chain.rpc) ?? new Map();",
        replace: "const answers: LastAnswers = new Map();",
        tests: ["test/unit/transfers/solana/final-states.test.ts"],
      },
      {
        name: "the final slot of the only endpoint that answers is not counted",
        find: "if (second === undefined) {\n    countAlone(deps, chain, reported);",
        replace: "if (second === undefined) {",
        tests: ["test/unit/transfers/solana/final-states.test.ts"],
      },
      {
        name: "a final slot of the first endpoint that stands still stops everything final on Solana",
        find: "if (first === undefined) return readFinal(chain);",
        replace: "if (reported.length >= 0) return readFinal(chain);",
      },
      {
        name: "a final slot that one endpoint alone reports counts at once",
        find: "hasWaitedLongEnough(deps, wait, { wanted, reached }) && wanted > reached",
        replace: "(hasWaitedLongEnough(deps, wait, { wanted, reached }), wanted > reached)",
      },
      {
        name: "a final slot counts that one endpoint alone reports and none serves",
        find: "hasWaited && (await readSlotTime(chain, wanted)) !== undefined",
        replace: "hasWaited",
      },
      {
        name: "final slots that one endpoint alone has reported are not counted",
        find: "deps.metrics.singleEndpointConfirmations.inc({ chain: chain.chain });",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/solana/wait-for-slot.ts",
    tests: ["test/integration/transfers/solana/slot-pass.test.ts"],
    mutations: [
      {
        name: "a cursor that one answer has moved above the cluster stays there",
        find: "if (!isBelow(head)) return false;",
        replace: "if (head >= 0) return false;",
      },
      {
        name: "one endpoint of two lowers a cluster's cursor",
        find: "Math.min(REQUIRED_ENDPOINTS, chain.network.rpc.length)",
        replace: "1",
      },
    ],
  },
  {
    file: "transfers/solana/raise-fees.ts",
    tests: raisedFees,
    mutations: [
      {
        name: "a payout of a relayer without money is signed again at each higher price",
        find: "if (!outcome.ok && outcome.later) return outcome.reason;",
        replace: "",
      },
      {
        name: "a payout at a higher price is sent before it is stored",
        find: "if (!(await storeReplacement(deps, chain, { row, signing }, epoch))) return undefined;",
        replace:
          "await broadcastStored(deps, chain, [signing]); if (!(await storeReplacement(deps, chain, { row, signing }, epoch))) return undefined;",
      },
    ],
  },
  {
    file: "transfers/solana/replacements.ts",
    tests: raisedFees,
    mutations: [
      {
        name: "a payout whose newer bytes disappeared with their slot is not proved by the older ones",
        find: 'one.row.state === "included" && !one.status && shown.has(nonceOf(one))',
        replace: "false",
      },
    ],
  },
  {
    file: "chains/solana/priority-fees.ts",
    tests: ["test/unit/chains/solana/priority-fees.test.ts"],
    mutations: [
      {
        name: "a fee that was not enough rises above the network's cap",
        find: "const wanted = least < cap ? least : cap;\n  return wanted > unitPrice",
        replace: "const wanted = least;\n  return wanted > unitPrice",
      },
      {
        name: "a transaction that offers the most is signed again for ever",
        find: "return wanted > unitPrice ? wanted : undefined;",
        replace: "return wanted;",
      },
    ],
  },
  {
    file: "transfers/solana/read-tracked-transactions.ts",
    tests: ["test/unit/transfers/solana/read-tracked-transactions.test.ts"],
    mutations: [
      {
        name: "one endpoint moves a transaction to another slot",
        find: "return agreed ?? (status ? undefined : (final[0] ?? shown[0]));",
        replace: "return final[0] ?? shown[0];",
      },
      {
        name: "two endpoints that agree about a slot do not count beside one that lies",
        find: "|| all.filter((one) => one === all[index]).length > 1",
        replace: "",
      },
      {
        name: "a transaction that the first endpoint never shows as final is never asked for at another",
        find: 'status ? status.depth !== "finalized" && status.slot <= upTo :',
        replace: "status ? false :",
        tests: stuckFinal,
      },
    ],
  },
  {
    file: "transfers/solana/track-statuses.ts",
    tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
    mutations: [
      {
        name: "a failed Solana transaction counts as having moved its money",
        find: "const good = some.filter(({ status }) => !status.error);",
        replace: "const good = some;",
      },
      {
        name: "a Solana payment is confirmed before its slot has the configured depth",
        find: 'return status.depth === "finalized" || status.depth === chain.network.finality;',
        replace: 'return status.depth !== "processed";',
        justification:
          "the depth is read from the endpoints again before anything is booked (transfers/solana/second-endpoint.ts)",
        tests: ["test/integration/transfers/solana/slot-pass.test.ts"],
      },
      {
        name: "an outcome that an endpoint had reported wrongly stays recorded",
        find: '(hasOtherOutcome && status.depth !== "processed")',
        replace: "false",
        tests: ["test/integration/transfers/solana/second-endpoint.test.ts"],
      },
      {
        name: "the money of a transaction is not booked when its buyer has also paid by a transfer of their own",
        find: '["assigned", "included", "confirmed"]',
        replace: '["assigned", "confirmed"]',
        tests: ["test/integration/transfers/solana/second-deposit.test.ts"],
      },
      {
        name: "a slot that disappears takes the proof of a payment that a final slot has",
        find: "const proved = assigned.filter(({ id }) => orphaned.has(id));",
        replace: "const proved = assigned;",
        tests: ["test/integration/transfers/solana/second-deposit.test.ts"],
      },
      {
        name: "a transaction whose slot was rolled back stays included",
        find: "await revertLanded(db, { chain: chain.chain, hashes });",
        replace: "",
        tests: ["test/integration/transfers/solana/slot-pass.test.ts"],
      },
    ],
  },
  {
    file: "chains/solana/cluster-state.ts",
    tests: ["test/integration/transfers/solana/prefunded-accounts.test.ts"],
    mutations: [
      {
        name: "a height of one endpoint that no column holds stops passes",
        find: "Height = z.int().nonnegative()",
        replace: "Height = z.number()",
        tests: ["test/integration/transfers/solana/expiry-heights.test.ts"],
      },
      {
        name: "a time of one endpoint that no date holds stops passes",
        find: "Seconds = z.int().nonnegative().max(8.64e12)",
        replace: "Seconds = z.number()",
        tests: ["test/unit/chains/solana/cluster-state.test.ts"],
      },
      {
        name: "lamports of one endpoint that are no whole number stop verifications",
        find: "lamports: Lamports",
        replace: "lamports: z.number()",
        tests: ["test/unit/chains/solana/cluster-state.test.ts"],
      },
      {
        name: "a final height that stands still at one of two endpoints keeps transactions from expiring",
        find: 'askState(call, "confirmed")',
        replace: 'askState(call, "finalized")',
        tests: ["test/unit/chains/solana/cluster-state.test.ts"],
      },
      {
        name: "an address to which a stranger has sent lamports counts as an account",
        find: "account !== undefined && account.data.length > 0 ? account : undefined",
        replace: "account",
      },
      {
        name: "a buyer can sign again after lost commits while the first transaction can still be included",
        find: "answers.map(({ value }) => value.lastValidBlockHeight)",
        replace: "answers.map(({ value }) => value.lastValidBlockHeight - 150)",
        tests: ["test/integration/payments/payouts/solana-failover.test.ts"],
      },
    ],
  },
  {
    file: "chains/solana/created-accounts.ts",
    tests: ["test/integration/payments/payouts/solana-restored-payouts.test.ts"],
    mutations: [
      {
        name: "a nonce account counts as a payout marker",
        find: "isMarker: authority === base",
        replace: "isMarker: true",
      },
    ],
  },
  {
    file: "chains/solana/simulate-wire-bytes.ts",
    tests: ["test/unit/chains/solana/simulate-wire-bytes.test.ts"],
    mutations: [
      {
        name: "a first endpoint that lags refuses valid payments as expired",
        find: "const { context, value } = knowing ?? first;",
        replace: "const { context, value } = first;",
      },
      {
        name: "an endpoint that lags decides that a blockhash has not expired",
        find: " && one.context.slot >= first.context.slot",
        replace: "",
      },
    ],
  },
  {
    file: "chains/failover-endpoint.ts",
    tests: ["test/unit/chains/failing-endpoint.test.ts"],
    mutations: [
      {
        name: "an endpoint that hangs has all its time for each second opinion",
        find: "if (!isFailing) return answer;",
        replace: "return answer;",
      },
      {
        name: "an endpoint that hangs is asked for each second opinion",
        find: "      suspend();\n",
        replace: "",
      },
      {
        name: "an endpoint that once hung never has all its time again",
        find: "      isFailing = false;\n",
        replace: "",
      },
    ],
  },
  {
    file: "chains/solana/solana-rpc.ts",
    tests: ["test/unit/chains/solana/solana-rpc.test.ts"],
    mutations: [
      {
        name: "a stranger's transactions suspend an endpoint",
        find: "const ask = () => endpoint.request(method",
        replace: "const ask = () => endpoint.requestOrSuspend(method",
      },
      {
        name: "late transactions wait for the budget of the smallest endpoint",
        find: 'await withCallPriority("convenience", () => Promise.allSettled(others.map(repeatAlone)));',
        replace: "await Promise.allSettled(others.map(repeatAlone));",
        tests: ["test/unit/chains/solana/solana-broadcast.test.ts"],
      },
      {
        name: "copies of late transactions accumulate at an endpoint that hangs",
        find: " && !repeating.has(endpoint)",
        replace: "",
        tests: ["test/integration/transfers/solana/swallowed-broadcasts.test.ts"],
      },
      {
        name: "a late transaction goes to the endpoint once more that has accepted it",
        find: "calls.filter(({ by }) => by !== endpoint.name)",
        replace: "calls.filter(({ by }) => by !== method)",
        tests: ["test/unit/chains/solana/solana-broadcast.test.ts"],
      },
      {
        name: "a stranger's transactions spend an endpoint's budget for money",
        find: 'withCallPriority("convenience", ask)',
        replace: "ask()",
      },
      {
        name: "an endpoint whose final slot stands still is asked first",
        find: 'connection.getSlot("finalized")',
        replace: 'connection.getSlot("confirmed")',
      },
      {
        name: "a second endpoint that hangs holds the watcher again and again",
        find: "endpoint.requestOptional(",
        replace: "endpoint.requestOrSuspend(",
      },
      {
        name: "an endpoint's error ends a request although another endpoint may answer",
        find: '!(error.code === "rpc_answer" && TRANSACTION_ERRORS.includes(readCode(error)))',
        replace: 'error.code !== "rpc_answer"',
      },
      {
        name: "a rate limit that is reported with status 200 does not rest the endpoint",
        find: "code === 429 || isRateLimitText(text)",
        replace: "code === 429",
      },
    ],
  },
  {
    file: "db/queries/account-cursors.ts",
    tests: startCluster,
    mutations: [
      {
        name: "a token account counts as read although no endpoint's history goes back to the restored moment",
        find: "listed_slot: upTo ?? null,",
        replace: "listed_slot: null,",
      },
    ],
  },
  {
    file: "transfers/solana/start-cluster.ts",
    tests: startCluster,
    mutations: [
      {
        name: "a restored database reads the whole history of a token account that it does not know",
        find: "...(await startAt(chain, await findNewestSignature(chain, account, upTo))), upTo",
        replace: "newest: undefined, upTo",
      },
      {
        name: "an endpoint that alone shows where the reading of an account begins decides where the lists of others end",
        find: "if (!newest || chain.network.rpc.length < REQUIRED_ENDPOINTS) return { newest };",
        replace: "if (!newest || chain.network.rpc.length < 9) return { newest };",
        tests: ["test/integration/transfers/solana/alone-listings.test.ts"],
      },
      {
        name: "an endpoint that alone shows where the reading of an account begins decides in which slot",
        find: "heads.length > 0 ? Math.min(slot, Math.max(...heads)) : slot",
        replace: "heads.length > 0 ? slot : slot",
        tests: ["test/integration/transfers/solana/alone-listings.test.ts"],
      },
    ],
  },
  {
    file: "chains/solana/transaction-history.ts",
    tests: ["test/integration/transfers/solana/short-history.test.ts"],
    mutations: [
      {
        name: "a slot that no column holds keeps a transaction from being recorded, which the first endpoint shows in it",
        find: "Height.parse(shown.slot);",
        replace: "",
        tests: ["test/integration/transfers/solana/history-errors.test.ts"],
      },
      {
        name: "a token account that a restored database does not know is read from its newest transaction",
        find: "page.find(({ slot }) => slot <= upTo)",
        replace: "page[0]",
        tests: startCluster,
      },
      {
        name: "an endpoint lists a signature that cannot be stored",
        find: "z.string().refine(isSignature)",
        replace: "z.string()",
        tests: ["test/integration/transfers/solana/list-history.test.ts"],
      },
      {
        name: "an endpoint lists a slot that cannot be stored",
        find: "slot: z.int().nonnegative()",
        replace: "slot: z.number()",
        tests: ["test/integration/transfers/solana/list-history.test.ts"],
      },
      {
        name: "what one endpoint lists does not count when another one lists nothing",
        find: "const pages = [...usable, ...(await keepEnded(chain, empty, isEnd))];",
        replace: "const pages = empty.length > 0 ? await keepEnded(chain, empty, isEnd) : usable;",
      },
      {
        name: "an endpoint whose history begins before the last listing does not count when another one lists more",
        find: "const pages = [...usable, ...(await keepEnded(chain, empty, isEnd))];",
        replace: "const pages = usable.length > 0 ? usable : await keepEnded(chain, empty, isEnd);",
        tests: ["test/integration/transfers/solana/awaited-listings.test.ts"],
      },
      {
        name: "an endpoint continues a listing before a transaction that only another one has listed",
        find: "before: places[by]?.before",
        replace: "before: by && Object.values(places).find((place) => place)?.before",
        tests: ["test/integration/transfers/solana/omitted-entries.test.ts"],
      },
    ],
  },
  {
    file: "chains/solana/final-movements.ts",
    tests: ["test/integration/transfers/solana/read-entry.test.ts"],
    mutations: [
      {
        name: "nodes without inner instructions make a deposit through a program one without a payer",
        find: "if (!shown.meta?.innerInstructions && found",
        replace: "if (false && found",
        tests: [
          "test/integration/transfers/solana/read-entry.test.ts",
          "test/integration/signer/deposits-by-programs-solana.test.ts",
        ],
      },
      {
        name: "nodes without inner instructions show no transaction",
        find: " && found.some(({ index }) => isUnexplained(index)))",
        replace: ")",
      },
    ],
  },
  {
    file: "chains/solana/nonce-accounts.ts",
    tests: ["test/integration/chains/solana/solana-rpc.test.ts"],
    mutations: [
      {
        name: "a lane pays the rent that one endpoint invents",
        find: "if (found === 0 || BigInt(found) > mostRent(bytes))",
        replace: "if (found === 0)",
      },
    ],
  },
  {
    file: "signer/solana/transaction-protocol.ts",
    tests: ["test/unit/signer/solana/transaction-protocol.test.ts"],
    mutations: [
      {
        name: "a thief of a worker locks a lane's lamports in a marker",
        find: ".refine((value) => value <= mostRent())",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/solana/read-entry.ts",
    tests: ["test/integration/transfers/solana/read-entry.test.ts"],
    mutations: [
      {
        name: "one endpoint hides a movement of the treasury",
        find: "return network.rpc.length >= REQUIRED_ENDPOINTS && !isExplained(reading);",
        replace: "return network.rpc.length < 0 && !isExplained(reading);",
      },
      {
        name: "dust costs a call of each endpoint",
        find: "seen.length > 0 && !seen.some(",
        replace: "seen.length > 1 && !seen.some(",
      },
    ],
  },
  {
    file: "transfers/solana/compare-readings.ts",
    tests: ["test/unit/transfers/solana/compare-readings.test.ts"],
    mutations: [
      {
        name: "an endpoint decides against others that disagree",
        find: "isAloneForLong(deps, chain, isOut) && readings.length === 0 && isOld;",
        replace: "isAloneForLong(deps, chain, isOut) && isOld;",
      },
      {
        name: "a stranger's transaction without a movement costs a call of each endpoint",
        find: "while (!findAgreed(first, readings)) {",
        replace: "while (readings.length > 0) {",
      },
      {
        name: "strangers' transactions take all calls that the second endpoint allows",
        find: "if (!isOut) await delay(paceMs);",
        replace: "",
      },
      {
        name: "each of a stranger's transactions waits for an endpoint that does not answer",
        find: "if (isOut && !isOld) continue;",
        replace: "isOut = false;",
      },
      {
        name: "a transaction that was not compared for half a minute is believed when the second endpoint is out for a moment",
        find: "return !isOut || now - since >= ALONE_MS;",
        replace: "return now >= since;",
      },
      {
        name: "an endpoint that has answered in between is not waited for again",
        find: "else aloneSince.delete(chain);",
        replace: "",
      },
      {
        name: "one endpoint is believed while the budget of the second one is spent",
        find: 'if (error.code === "budget_spent") {',
        replace: 'if (error.code === "budget_spent" && reads.push({ entry, seen: [], forgotten: undefined }) < 0) {',
      },
      {
        name: "one endpoint ends for ever what the other one lists and cannot return",
        find: "isOnlyOne && isRelisted(entry, isOut)",
        replace: "isOnlyOne",
        tests: [
          "test/unit/transfers/solana/compare-readings.test.ts",
          "test/integration/transfers/solana/waiting-entries.test.ts",
        ],
      },
      {
        name: "one endpoint ends for ever what another one that is out may show",
        find: "if (lacking.length < chain.network.rpc.length - 1) return false;",
        replace: "",
      },
      {
        name: "a transaction from before the second endpoint's history waits for ever",
        find: "(isOnlyOne && (await isBeforeOthers(account, entry, compared)))",
        replace: "false",
        tests: [
          "test/unit/transfers/solana/compare-readings.test.ts",
          "test/integration/transfers/solana/unanswered-entries.test.ts",
        ],
      },
    ],
  },
  {
    file: "transfers/solana/waiting-entries.ts",
    tests: ["test/integration/transfers/solana/waiting-entries.test.ts"],
    mutations: [
      {
        name: "an endpoint that was repaired is not asked again about a transaction that it has shown wrongly",
        find: "[...others, ...contradicted].map(",
        replace: "others.map(",
      },
      {
        name: "a payment waits for ever for a transaction that one endpoint has invented and shows no more",
        find: " || mayBeInvented(entry)",
        replace: "",
        tests: ["test/integration/transfers/solana/history-errors.test.ts"],
      },
      {
        name: "a payment waits for an endpoint that is out as long as it is, because that one has listed a transaction",
        find: "(isOut && urgent) || ",
        replace: "",
        tests: ["test/integration/transfers/solana/unanswered-entries.test.ts"],
      },
      {
        name: "an invented slot has what came after it listed again",
        find: "(isOut && urgent)",
        replace: "isOut",
        tests: ["test/integration/transfers/solana/unanswered-entries.test.ts"],
      },
      {
        name: "the reading of an endpoint that was removed still counts",
        find: " && network.rpc.some(({ name }) => name === reading.by)",
        replace: " && reading.by.length > 0",
      },
    ],
  },
  {
    file: "db/queries/history-entries.ts",
    tests: ["test/integration/transfers/solana/waiting-entries.test.ts"],
    mutations: [
      {
        name: "a stranger's transaction that waits for a second endpoint is read from the first one at each retry",
        find: '.where("reading", "is", null)',
        replace: "",
      },
    ],
  },
  {
    file: "transfers/solana/list-history.ts",
    tests: ["test/integration/transfers/solana/short-history.test.ts"],
    mutations: [
      {
        name: "a listing that no endpoint continues is kept",
        find: "if (Object.keys(places).length === 0) return null;",
        replace: "",
      },
      {
        name: "later listings end at a transaction of an endpoint whose list is too short",
        find: "for (const by of found.short) lists.delete(by);",
        replace: "",
        tests: ["test/integration/transfers/solana/list-history.test.ts"],
      },
      {
        name: "an endpoint whose list is too short goes on where no list of its continues",
        find: "filter(([by]) => !short.includes(by))",
        replace: "filter(([by]) => short.length >= 0 || by)",
        tests: ["test/integration/transfers/solana/list-history.test.ts"],
      },
      {
        name: "an endpoint that lists without end holds all listings",
        find: "const isComplete = isEnd || (isLast && !isAwaited);",
        replace: "const isComplete = isEnd;",
        tests: ["test/integration/transfers/solana/list-history.test.ts"],
      },
      {
        name: "an endpoint that lists more than one run does is not waited for",
        find: "const isComplete = isEnd || (isLast && !isAwaited);",
        replace: "const isComplete = isLast;",
        tests: ["test/integration/transfers/solana/list-history.test.ts"],
      },
      {
        name: "later listings end at a transaction that one endpoint of two has invented",
        find: "const required = isOnly ? 1 : REQUIRED_ENDPOINTS;",
        replace: "const required = 1;",
        tests: ["test/integration/transfers/solana/list-history.test.ts"],
      },
      {
        name: "only what one endpoint lists of the treasury's history is read",
        find: "const listed = parts.flatMap(({ fresh }) => fresh);",
        replace: "const listed = parts.slice(0, 1).flatMap(({ fresh }) => fresh);",
        tests: ["test/integration/transfers/solana/omitted-entries.test.ts"],
      },
      {
        name: "what one endpoint has listed alone is not listed again",
        find: "alone: !isAgreed",
        replace: "alone: false",
        tests: ["test/integration/transfers/solana/omitted-entries.test.ts"],
      },
      {
        name: "a listing counts although another endpoint lags",
        find: "began: isAwaited ? undefined : began",
        replace: "began",
        tests: ["test/integration/transfers/solana/omitted-entries.test.ts"],
      },
    ],
  },
  {
    file: "transfers/solana/record-entries.ts",
    tests: ["test/integration/transfers/solana/unanswered-entries.test.ts"],
    mutations: [
      {
        name: "what one endpoint alone has shown of a transaction that both have listed is not listed again",
        find: "if (oldest && !(await relistFrom(db, held, oldest))) return () => undefined;",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/solana/list-ends.ts",
    tests: ["test/integration/transfers/solana/short-history.test.ts"],
    mutations: [
      {
        name: "each listing of a quiet token asks an endpoint that has missed one where its history begins",
        find: "(page.length > 0 || listedSlot === null)) || isContinuous(page, cursor, reached)",
        replace: "(page.length > 0 || listedSlot === null)) || (knows(by) && isContinuous(page, cursor, reached))",
        tests: ["test/integration/transfers/solana/alone-listings.test.ts"],
      },
      {
        name: "an endpoint's empty page ends a listing of the history",
        find: "isOld && final - listedSlot <= RECENT_SLOTS",
        replace: "true",
      },
      {
        name: "an endpoint's empty page ends a listing soon after the last one, although the newest known transaction is new",
        find: "isOld && final",
        replace: "final",
      },
      {
        name: "an endpoint's empty page ends a listing of an account that is rarely used, whenever the last one was",
        find: "&& final - listedSlot <= RECENT_SLOTS",
        replace: "",
      },
      {
        name: "a page of older transactions ends a listing",
        find: "last.slot >= (slot ?? 0)",
        replace: "true",
      },
      {
        name: "an endpoint's history may begin before the newest known transaction and lack it",
        find: "(slot === null || slot < firstSlot)",
        replace: "true",
      },
      {
        name: "an endpoint's history may begin after the last listing",
        find: "firstSlot <= listedSlot",
        replace: "true",
      },
      {
        name: "the newest known transaction is read again with each listing of the history",
        find: "known === -1 ? page : page.slice(0, known)",
        replace: "page",
        justification:
          "a transaction whose movements are recorded is not stored again (transfers/solana/store-listed.ts)",
      },
      {
        name: "an endpoint that once lists alone decides for good where the lists of others end",
        find: "shownBy === null || shownBy === by",
        replace: "shownBy !== by || shownBy === by",
        tests: ["test/integration/transfers/solana/alone-listings.test.ts"],
      },
      {
        name: "an endpoint is asked for a list that ends at a transaction which another one alone has shown",
        find: "knows(by) ? (cursor.until_signature ?? undefined) : undefined",
        replace: "knows(by) || by ? (cursor.until_signature ?? undefined) : undefined",
        tests: ["test/integration/transfers/solana/alone-listings.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/account-cursors.ts",
    tests: ["test/integration/transfers/solana/alone-listings.test.ts"],
    mutations: [
      {
        name: "that one endpoint alone has shown the end of the history is not stored",
        find: "shown_by: by ?? null,",
        replace: "shown_by: null,",
      },
      {
        name: "an endpoint lists the history back to its beginning while it lists alone",
        find: "when shown_by is null or shown_by = ${by ?? null} then",
        replace: "when shown_by is null then",
      },
    ],
  },
  {
    file: "transfers/solana/list-agreement.ts",
    tests: ["test/integration/transfers/solana/awaited-listings.test.ts"],
    mutations: [
      {
        name: "an account whose listings agree ends the wait of another account of the cluster",
        find: "    accounts.delete(account);",
        replace: "    accounts.clear();",
      },
    ],
  },
  {
    file: "transfers/solana/relist-history.ts",
    tests: ["test/integration/transfers/solana/omitted-entries.test.ts"],
    mutations: [
      {
        name: "one endpoint ends what another one lists again",
        find: "parts.every(({ isEnd }) => isEnd)",
        replace: "parts.some(({ isEnd }) => isEnd)",
      },
      {
        name: "what is listed again delays payouts of every process",
        find: "const { relist_slot: slot, relist_at: listedAfter } = cursor;",
        replace: "const { relist_slot: slot } = cursor;\n  const listedAfter = null;",
      },
    ],
  },
  {
    file: "transfers/solana/invented-entries.ts",
    tests: ["test/integration/transfers/solana/history-errors.test.ts"],
    mutations: [
      {
        name: "a payment expires although a transaction that names it exists and cannot be read",
        find: "if (!never.has(signature)) return;",
        replace: "void never;",
      },
    ],
  },
  {
    file: "transfers/solana/slot-pass.ts",
    tests: ["test/integration/transfers/solana/read-history.test.ts"],
    mutations: [
      {
        name: "a slot is marked booked before the history up to it has been read",
        find: "const booked = final && Math.min(final.slot, history?.readSlot ?? 0);",
        replace: "const booked = final?.slot;",
      },
      {
        name: "a hundred transfers that wait for an endpoint keep later ones on Solana waiting",
        find: "full = found.length === CHUNK;",
        replace: "full = false;",
        tests: ["test/integration/transfers/solana/second-endpoint.test.ts"],
      },
    ],
  },
  {
    file: "signer/solana/authorize-transactions.ts",
    tests: ["test/integration/signer/stolen-database-solana.test.ts"],
    mutations: [
      {
        name: "the treasury pays the fee of a transaction, or another account does",
        find: 'if (!chain.lanes.includes(feePayer) || feePayer === chain.treasury) return refuse("fee_payer_unknown");',
        replace: "",
      },
      {
        name: "the treasury signs a transaction while all payouts are paused",
        find: 'if (limits.paused) return refuse("paused");',
        replace: "",
      },
      {
        name: "the treasury signs a transaction with a recent blockhash in place of a nonce",
        find: 'if (read.nonces[0] !== nonce) return report(deps, refuse("nonce_stale"));',
        replace: "",
      },
      {
        name: "the treasury signs a payout on Solana that was not authorized with this amount and receiver",
        find: 'if (!isAuthorized(store, payout) && !isColdTransfer(deps, payout)) return refuse("payout_unauthorized", nonce);',
        replace: "void [isAuthorized, isColdTransfer, payout];",
      },
      {
        name: "the treasury signs a payout again whose marker was closed",
        find: 'if (markers.some((marker) => findClosing(store, { chain, marker }))) return refuse("payout_closed");',
        replace: "",
      },
      {
        name: "a marker is closed although a signed transaction of its payout can still be included",
        find: "isMarker(accounts.get(address)) && transactions.every(isDead)",
        replace: "isMarker(accounts.get(address))",
      },
      {
        name: "one endpoint's word closes a marker",
        find: "const [, slot] = slots",
        replace: "const [slot] = slots",
        tests: closings,
      },
      {
        name: "a marker is closed while only one endpoint answers",
        find: "if (states.length < 2)",
        replace: "if (states.length < 1)",
        tests: closings,
      },
      {
        name: "a marker is closed while a recent blockhash in place of a nonce may be valid",
        find: "transactions.every(({ signedAt }) => signedAt <= signedBefore)",
        replace: "transactions.every(({ signedAt }) => signedAt > 0 || signedBefore < 0)",
        tests: closings,
      },
      {
        name: "an account is closed that is no marker of a signed payout",
        find: "return transactions.length > 0 && !kept.has(marker.address) ? [{ ...marker, transactions }] : [];",
        replace: "return kept.has(marker.address) ? [] : [{ ...marker, transactions }];",
      },
      {
        name: "a worker has the marker of a withdrawal closed",
        find: " && !kept.has(marker.address)",
        replace: "",
        tests: ["test/integration/signer/withdrawals-solana.test.ts"],
      },
    ],
  },
  {
    file: "signer/solana/closed-payouts.ts",
    tests: ["test/integration/signer/cold-transfers-solana.test.ts"],
    mutations: [
      {
        name: "a state that is older than a transfer to the cold address counts as showing it",
        find: "return closing !== undefined && closing.slot <= height;",
        replace: "return closing !== undefined;",
      },
      {
        name: "a transfer to the cold address whose marker was closed is never known as made",
        find: "return closing !== undefined && closing.slot <= height;",
        replace: "return closing !== undefined && height < 0;",
      },
    ],
  },
  {
    file: "chains/solana/nonce-accounts.ts",
    tests: ["test/integration/signer/rotated-treasury-solana.test.ts"],
    mutations: [
      {
        name: "a treasury that replaces another one gets nonce accounts that it cannot advance",
        find: "update(`${deployment}\\n${chain.treasury}`)",
        replace: "update(deployment)",
      },
    ],
  },
  {
    file: "transfers/solana/close-markers.ts",
    tests: ["test/integration/signer/rotated-treasury-solana.test.ts"],
    mutations: [
      {
        name: "the treasury tries to close markers of the one before it",
        find: ".find((one) => isMarkerOf(one, chain.treasury))",
        replace: ".find((one) => one !== undefined)",
      },
      {
        name: "a marker that one of two endpoints does not show is forgotten",
        find: "isGone: lacking.length >= required",
        replace: "isGone: lacking.length > 0",
        tests: ["test/integration/transfers/solana/close-markers.test.ts"],
      },
      {
        name: "a marker is forgotten that endpoints did not show before it was made",
        find: "one.slot >= createdIn && ",
        replace: "",
        tests: ["test/integration/transfers/solana/close-markers.test.ts"],
      },
    ],
  },
  {
    file: "chains/solana/lacking-slots.ts",
    tests: ["test/integration/transfers/solana/lost-slots.test.ts"],
    mutations: [
      {
        name: "every endpoint lacks a slot that is not final",
        find: 'if ((await connection.getSlot("finalized")) <= slot) return false;',
        replace: "void connection;",
      },
    ],
  },
  {
    file: "transfers/solana/beside-passes.ts",
    tests: ["test/integration/transfers/solana/submit-ready.test.ts"],
    mutations: [
      {
        name: "a pass waits for a second endpoint as long as it takes",
        find: "const hasEnded = await Promise.race([run.then(end, end), delay(earlier ? 0 : WAIT_MS, false, { ref: false })]);",
        replace: "const hasEnded = await run.then(end, end);",
      },
    ],
  },
];
