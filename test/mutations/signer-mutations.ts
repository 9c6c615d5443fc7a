// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const stolen = ["test/integration/signer/stolen-database.test.ts"];
const returns = ["test/integration/signer/returns.test.ts"];
const rules = ["test/unit/signer/rules.test.ts"];
const formers = ["test/integration/signer/former-treasuries.test.ts"];
const withdrawals = ["test/integration/signer/withdrawals-solana.test.ts"];
const oldHeights = ["test/integration/chains/evm/old-final-heights.test.ts"];
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
        name: "a movement that was recorded while the chain was read counts for a second payment",
        find: "refused ?? findRecorded(one.claim) ?? ",
        replace: "refused ?? ",
        tests: ["test/integration/signer/several-authorizations.test.ts"],
      },
      {
        name: "a deposit counts before it is final",
        find: 'if (transaction.state === "not_final") return refuse("not_final");',
        replace: 'if (transaction.state === "not_final") return refuse("deposit_not_found");',
        tests: ["test/integration/signer/signer-down.test.ts"],
      },
      {
        name: "money that was returned counts as a deposit",
        find: "if (mayBeReturned && isReturned())",
        replace: "if (mayBeReturned && false)",
        tests: returns,
      },
    ],
  },
  {
    file: "chains/solana/signed-payment.ts",
    tests: ["test/unit/chains/solana/signed-payment.test.ts"],
    mutations: [
      {
        name: "bytes that the relayer has not signed say what was paid",
        find: "if (!isSignedByRelayer(parsed)) return undefined;",
        replace: "",
      },
      {
        name: "bytes whose fee payer is no relayer say what was paid",
        find: " || !chain.lanes.includes(parsed.feePayer)",
        replace: "",
      },
      {
        name: "bytes of another transaction say what was paid",
        find: " || firstSignature(bytes) !== hash",
        replace: "",
      },
      {
        name: "bytes of a transaction that was not asked for say what was paid",
        find: "if (compareTransaction(parsed, transfer, limits).length > 0) return undefined;",
        replace: "",
      },
    ],
  },
  {
    file: "chains/solana/final-movements.ts",
    tests: ["test/integration/signer/signed-deposits-solana.test.ts"],
    mutations: [
      {
        name: "a failed transaction is a deposit",
        find: "if (hashes.has(signature) && !failed)",
        replace: "if (hashes.has(signature))",
      },
      {
        name: "a deposit that the signer's first endpoint lacks does not exist",
        find: "await findTransaction(chain, wanted, read)",
        replace:
          "(await readTransactionFromEach(chain, wanted, read)).find(({ by }) => by === chain.network.rpc[0]?.name)?.answer",
        tests: ["test/integration/signer/missing-deposits-solana.test.ts"],
      },
    ],
  },
  {
    file: "chains/evm/final-movements.ts",
    tests: ["test/integration/chains/evm/final-movements.test.ts"],
    mutations: [
      {
        name: "a transaction in a block that is not final counts",
        find: 'if (blockNumber > final) return { state: "not_final" };',
        replace: "",
      },
      {
        name: "movements of strangers keep endpoints from agreeing, of which one refuses the receipt",
        find: "tokenAt(chain, token) && (payer === treasury || receiver === treasury)",
        replace: "token + payer + receiver + treasury",
      },
      {
        name: "an answer of the first endpoint that cannot be read keeps the signer from reading deposits",
        find: "if (isUnavailable(error) || !isTransientChainError(error)) throw error;",
        replace: "if (isUnavailable(error) || !(error instanceof ChainError)) throw error;",
      },
      {
        name: "an answer of the second endpoint that cannot be read keeps the signer from reading deposits",
        find: "if (isTransientChainError(error)) return new Map",
        replace: "if (error instanceof ChainError) return new Map",
      },
      {
        name: "a deposit is recorded in another block than its transaction",
        find: "if (movements.some((one) => one.blockNumber !== blockNumber))",
        replace: "if (false)",
      },
      {
        name: "the signer reads no transaction whose receipt is too large for its endpoints",
        find: "if (!isTooLarge(error)) throw error;",
        replace: "throw error;",
      },
      {
        name: "a large movement that one endpoint shows needs no second one",
        find: 'one.state === "final" && needsSecond(chain, one.movements, agree)',
        replace: "false",
      },
      {
        name: "an endpoint agrees with itself about a large movement",
        find: "by !== name && !agreed.has(hash)",
        replace: "!agreed.has(hash)",
      },
      {
        name: "the first endpoint's old final block stops payouts",
        find: "if (name !== by && open.length > 0) add(",
        replace: "if (open.length < 0) add(",
        tests: oldHeights,
      },
      {
        name: "a first endpoint without a final block stops payouts",
        find: "if (isUnavailable(error) || !isTransientChainError(error)) throw error;",
        replace: "throw error;",
        tests: oldHeights,
      },
      {
        name: "a transaction above an old final height is not read again",
        find: "if (above.length > 0 && !isNew)",
        replace: "if (above.length > 0 && isNew)",
      },
    ],
  },
  {
    file: "chains/evm/final-balance.ts",
    tests: oldHeights,
    mutations: [
      {
        name: "the treasury's balance is read at an old final block although another endpoint has a newer one",
        find: "return ahead.length < endpoints.length ? ahead : [];",
        replace: "return [];",
      },
    ],
  },
  {
    file: "chains/evm/final-readings.ts",
    tests: ["test/integration/chains/evm/final-movements.test.ts"],
    mutations: [
      {
        name: "final transactions accumulate without a bound",
        find: "if (movements <= MAX_MOVEMENTS) break;",
        replace: "break;",
        tests: ["test/unit/chains/evm/final-readings.test.ts"],
      },
      {
        name: "what one endpoint has shown counts as another one's",
        find: "const known = readings.get(rpc) ?? openReadings(rpc);",
        replace:
          "const known = readings.get(readings as never) ?? openReadings(rpc); readings.set(readings as never, known);",
      },
      {
        name: "the reading of one treasury is used for another one",
        find: "`${treasury} ${hash}`",
        replace: "`${hash}`",
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
    file: "signer/audit/entries.ts",
    tests: ["test/unit/signer/audit-log.test.ts"],
    mutations: [
      {
        name: "an entry of the audit log is written outside of the transaction of its change",
        find: "if (!store.isTransaction)",
        replace: "if (false)",
      },
      {
        name: "an entry goes into a day that has ended",
        find: 'const open = typeof ended === "string" ? dayAfter(ended) : "";',
        replace: 'const open = "";',
      },
    ],
  },
  {
    file: "signer/audit/heads.ts",
    tests: ["test/integration/payments/maintenance/signer-log.test.ts"],
    mutations: [
      {
        name: "an older copy of the store that lacks only payouts is not noticed",
        find: "sealRecords({ store, now }, { everyMs: -Infinity });",
        replace: "sealRecords({ store, now });",
      },
    ],
  },
  {
    file: "signer/audit/verify-log.ts",
    tests: ["test/unit/signer/audit-log.test.ts"],
    mutations: [
      {
        name: "a decision that was deleted from its table is not found",
        find: "return [...findings, ...[...left.keys()].map((subject) => `row ${subject}: missing`)];",
        replace: "return findings;",
      },
      {
        name: "a verification reports what a signer writes meanwhile",
        find: "return inReadTransaction(store, () => verifyAll(store, exported));",
        replace: "return inReadTransaction === undefined ? verifyLog(store, []) : verifyAll(store, exported);",
      },
      {
        name: "a changed payout is not found",
        find: "if (extendSeal(store, table, { from: before[table], last }).hash !== hash)",
        replace: "if (false)",
      },
    ],
  },
  {
    file: "signer/apply-due-claims.ts",
    tests: ["test/unit/signer/stops.test.ts"],
    mutations: [
      {
        name: "a claim that became due while the signer was stopped applies at its start",
        find: "if (findHoldEnd(store, at) > 0) return;",
        replace: "",
      },
    ],
  },
  {
    file: "signer/stops.ts",
    tests: ["test/unit/signer/stops.test.ts"],
    mutations: [
      {
        name: "a clock that was ahead holds claims until an hour after its time",
        find: "(findStopEnd(store) ?? 0) > at.getTime();",
        replace: "false;",
      },
      {
        name: "a claim is said to wait until an hour after the time of a clock that was ahead",
        find: "Math.min(end, at.getTime()) + HOLD_MS",
        replace: "end + HOLD_MS",
      },
    ],
  },
  {
    file: "payments/maintenance/signer-log.ts",
    tests: ["test/integration/payments/maintenance/signer-log.test.ts"],
    mutations: [
      {
        name: "an older copy of the signer's store is not noticed",
        find: "if (known === null || knownHash === known.hash) return undefined;",
        replace: "if (knownHash === null || known === null || knownHash === known.hash) return undefined;",
      },
      {
        name: "a signer that does not tell its newest entry counts as compared",
        find: "if (!answer) return;\n    deps.metrics.signerLogCompared.set(deps.now().getTime() / 1000);",
        replace: "deps.metrics.signerLogCompared.set(deps.now().getTime() / 1000);\n    if (!answer) return;",
      },
    ],
  },
  {
    file: "api/polling/status-cache.ts",
    tests: ["test/unit/api/polling/status-cache.test.ts"],
    mutations: [
      {
        name: "a newer status is shown before other processes are told",
        find: "await publishNews(newer);",
        replace: "",
      },
      {
        name: "a status that changes while a long poll reads it is shown to later requests",
        find: "isLasting && marks.get(owned.status.paymentId)?.changed === false",
        replace: "isLasting",
      },
      {
        name: "a status is kept that was read while unannounced changes were not found",
        find: "const session = deps.isFollowed() ? deps.current() : undefined;",
        replace: "const session = deps.current();",
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
        name: "a former treasury that was named wrongly ends the rebuild without its payouts",
        find: "if (wrong)",
        replace: "if (wrong && chains.size === 0)",
        tests: formers,
      },
      {
        name: "a signature that was kept restores a destination that the merchant has replaced",
        find: "if (receiver === highest?.receiver)",
        replace: "if (highest)",
        tests: formers,
      },
    ],
  },
  {
    file: "signer/treasury-histories.ts",
    tests: formers,
    mutations: [
      {
        name: "the histories of one chain end at different heights",
        find: "{ from: from.get(chain.chain) ?? 0, to };",
        replace: "{ from: from.get(chain.chain) ?? 0, to: await getChainDriver(chain.chain).readFinalHeight(chain) };",
      },
      {
        name: "a payout that one of two endpoints leaves out is not recorded",
        find: "requireSame(chain, flows, second);",
        replace: "",
        tests: ["test/integration/signer/rebuild.test.ts"],
      },
    ],
  },
  {
    file: "signer/withdraw-capital.ts",
    tests: ["test/integration/signer/withdrawals.test.ts"],
    mutations: [
      {
        name: "a withdrawal to another receiver than the first of its reference is signed without a record",
        find: "if (wasAuthorized(store, payout)) return undefined;",
        replace: "if (counted === 0n) return undefined;",
      },
      {
        name: "a withdrawal is signed although a pause has begun while the chain was read",
        find: "const approval = findApproval(deps, { withdrawal, payout: { ...payout, treasury } }, file.approvals);",
        replace: "const approval = asked;",
      },
      {
        name: "a reference is used for a second asset of the Disburser, which is never paid",
        find: "findAssetRefusal(deps.store, chain, payout) ??",
        replace: "",
      },
      {
        name: "a withdrawal is signed again although its marker was closed while it was drafted",
        find: "(draft && findReferenceRefusal(deps.store, draft)) ??",
        replace: "",
        tests: withdrawals,
      },
    ],
  },
  {
    file: "signer/solana/draft-withdrawal.ts",
    tests: withdrawals,
    mutations: [
      {
        name: "a reference is used for a second asset on Solana, which is never paid",
        find: "if (!listAuthorizedAssets(store, { nonce: payout.nonce, treasury }).some(isOther)) return undefined;",
        replace: "if (isOther.length > 0) return undefined;",
      },
      {
        name: "a withdrawal that would fail is recorded",
        find: 'if (!outcome.ok) return refuse("withdrawal_failing", outcome.reason);',
        replace: "if (!outcome.ok) Object.assign(outcome, { units: most });",
      },
      {
        name: "a token account or a mint receives a withdrawal",
        find: "if (owner && programs.has(owner.owner))",
        replace: "if (owner === null)",
      },
    ],
  },
  {
    file: "signer/solana/transaction-records.ts",
    tests: withdrawals,
    mutations: [
      {
        name: "a worker has a transaction of a withdrawal signed",
        find: "and kind <> 'withdrawal' limit 1",
        replace: "limit 1",
      },
    ],
  },
  {
    file: "signer/verify-deposits.ts",
    tests: ["test/integration/signer/lying-endpoint.test.ts"],
    mutations: [
      {
        name: "small deposits that one endpoint shows are compared with the threshold one by one",
        find: "(sums.get(asset) ?? sumLone(store, asset)) + amount",
        replace: "amount",
      },
      {
        name: "concurrent requests each verify what one endpoint may show",
        find: '(fits(one) ? undefined : refuse("not_final", TOO_MANY))',
        replace: "undefined",
      },
      {
        name: "deposits that do not fit are not read from a second endpoint",
        find: 'checkOnChain(deps, id, others, "all")',
        replace: 'checkOnChain(deps, id, others, "large")',
      },
    ],
  },
  {
    file: "signer/agree-deposits.ts",
    tests: ["test/integration/signer/lying-endpoint.test.ts"],
    mutations: [
      {
        name: "a deposit that a second endpoint does not show counts as agreed",
        find: "if (isSame) shown.add(one);",
        replace: "void isSame;\n      shown.add(one);",
      },
      {
        name: "an endpoint that refuses a call has shown none of a thousand deposits",
        find: "alone[READ_ALONE] ?? listed.length",
        replace: "Math.max(alone.length, listed.length)",
      },
      {
        name: "each run asks for every lone deposit while no second endpoint shows the oldest one",
        find: "oldest.size > 0 ?",
        replace: "oldest.size >= 0 ?",
        tests: ["test/integration/signer/lying-endpoint-solana.test.ts"],
      },
      {
        name: "each Solana payment is read from a second endpoint as a transaction",
        find: "{ known: listKnown(deps, of, some), agree",
        replace: "{ known: new Map(), agree",
        tests: ["test/integration/signer/lying-endpoint-solana.test.ts"],
      },
      {
        name: "a second endpoint's list shows what a payment without signed bytes has moved",
        find: "if (!isBySignedBytes || token === undefined) continue;",
        replace: "void isBySignedBytes;\n    if (token === undefined) continue;",
        tests: ["test/integration/signer/lying-endpoint-solana.test.ts"],
      },
    ],
  },
  {
    file: "signer/retired-treasuries.ts",
    tests: ["test/integration/signer/rebuild.test.ts"],
    mutations: [
      {
        name: "a rebuild begins although the operator has not said which treasuries were replaced",
        find: "if (named === undefined && before.length === 0)",
        replace: "if (named === null)",
        tests: formers,
      },
      {
        name: "a rebuild that is killed when it begins has retired only some of the treasuries",
        find: '  inStoreTransaction(store, () => {\n    for (const one of treasuries) recordRetirement(store, one, { state: "begun", at: now() });\n  });',
        replace: '  for (const one of treasuries) recordRetirement(store, one, { state: "begun", at: now() });',
      },
      {
        name: "a deposit into the treasury that follows keeps a rebuild from ending",
        find: "const present = isRebuilding(store) && !retired.includes(chain.treasury) ? [] : [chain];",
        replace: "const present = [chain];",
        tests: formers,
      },
      {
        name: "deposits into a retired treasury are verified after the rebuild",
        find: "(one) => !hasEnded(store, one),",
        replace: "() => true,",
      },
      {
        name: "a store with payouts retires its treasuries",
        find: "if (countRecords(store).payouts > 0)",
        replace: "if (countRecords(store).payouts < 0)",
      },
      {
        name: "a retired treasury signs again",
        find: 'return isRetired(store, of) ? refuse("treasury_retired") : undefined;',
        replace: "return undefined;",
      },
      {
        name: "a store whose payouts are not rebuilt signs",
        find: 'if (isRebuilding(store)) return refuse("rebuild_unfinished");',
        replace: "",
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
    file: "signer/recorded-assets.ts",
    tests: ["test/integration/signer/removed-assets.test.ts"],
    mutations: [
      {
        name: "a payout on a chain that left the networks file is forgotten",
        find: "(select max(id) from asset group by asset)",
        replace: "(select max(id) from asset)",
      },
      {
        name: "an asset with payouts becomes another currency",
        find: "if (known && !isCounted && hasMoved(store, asset))",
        replace: "if (false as boolean && known)",
      },
      {
        name: "an asset with payouts changes its kind, so that each can be made a second time",
        find: "&& hasSigned(store, { asset, treasury }))",
        replace: "&& (false as boolean) && hasSigned(store, { asset, treasury }))",
      },
      {
        name: "an asset becomes another kind by way of another treasury",
        find: 'from asset where asset = ? and treasury = ? order by id desc limit 1")',
        replace: "from asset where asset = ? and ? <> '' order by id desc limit 1\")",
      },
    ],
  },
  {
    file: "signer/authorize-payouts.ts",
    tests: stolen,
    mutations: [
      {
        name: "the payouts of new merchants have only a limit for each merchant",
        find: "newMerchantsDay: ofNewMerchant ? sumWindow(store, { asset, onlyNew: true }, day) : undefined,",
        replace: "newMerchantsDay: ofNewMerchant ? 0n : undefined,",
        tests: limits,
      },
      {
        name: "a destination is not checked",
        find: "if (refused) return refuse(refused);",
        replace: "",
      },
      {
        name: "payouts that the deposits do not cover are not remembered",
        find: "shortPayouts.note(payout, result);",
        replace: "void shortPayouts;",
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
        find: "sumPayouts(store, { asset, merchantId }) + counted",
        replace: "sumPayouts(store, { asset, merchantId })",
      },
      {
        name: "a store with a return seems to have none",
        find: "kind not in ('settlement', 'refund')",
        replace: "kind not in ('settlement', 'refund', 'return')",
        tests: returns,
      },
      {
        name: "a log that a request names twice counts twice in a merchant's funds",
        find: "if (insert.run(chain, txHash, logIndex, ...paid, at.getTime()).changes === 1) total += amount;",
        replace: "insert.run(chain, txHash, logIndex, ...paid, at.getTime());\n      total += amount;",
        tests: ["test/unit/signer/records.test.ts"],
      },
      {
        name: "payouts of new merchants are not counted together",
        find: "if (ofNewMerchant) insertOfNewMerchant(store,",
        replace: "if (false) insertOfNewMerchant(store,",
        tests: ["test/unit/signer/records.test.ts"],
      },
      {
        name: "a clock that has gone back is not noted",
        find: 'if (typeof before === "number" && before > at.getTime())',
        replace: "if (false)",
        tests: ["test/unit/signer/records.test.ts"],
      },
      {
        name: "a window trusts the order of payouts although the clock has gone back",
        find: "if (wentBackSince(store, until)) {",
        replace: "if (false) {",
        tests: ["test/unit/signer/records.test.ts"],
      },
    ],
  },
  {
    file: "signer/store.ts",
    tests: ["test/unit/signer/store.test.ts"],
    mutations: [
      {
        name: "a rollback that is not needed hides the error of a full disk",
        find: 'if (store.isTransaction) store.exec("rollback");',
        replace: 'store.exec("rollback");',
      },
      {
        name: "an error leaves the transaction of the store open",
        find: 'if (store.isTransaction) store.exec("rollback");',
        replace: "",
      },
    ],
  },
  {
    file: "signer/new-merchants.ts",
    tests: ["test/unit/signer/new-merchants.test.ts"],
    mutations: [
      {
        name: "a merchant that was reported long ago and has received no money is not new",
        find: ", findFirstDeposit(store, merchantId)];",
        replace: "];",
      },
      {
        name: "a rebuild makes every merchant a new one",
        find: " && !wasPaidBefore(store, merchantId);",
        replace: ";",
      },
    ],
  },
  {
    file: "signer/rules.ts",
    tests: rules,
    mutations: [
      {
        name: "all new merchants together have no limit",
        find: "of.newMerchantsDay + of.increase > limits.newMerchantsPerDay",
        replace: "false",
      },
      {
        name: "any account can receive a refund",
        find: 'sumAmounts(own) < returned ? "receiver_not_payer" : undefined',
        replace: "undefined",
      },
      {
        name: "refunds can exceed what was paid",
        find: "sumAmounts(refunds.map(({ counted }) => ({ amount: counted }))) + increase",
        replace: "increase",
      },
      {
        name: "an account can receive what others paid",
        find: "sumAmounts(own) < returned",
        replace: "sumAmounts(deposits) < returned",
      },
      {
        name: "an account can receive what it paid with each refund",
        find: "amount + sumOtherRefunds({ nonce, receiver }, refunds)",
        replace: "amount",
      },
    ],
  },
  {
    file: "signer/verify-returns.ts",
    tests: returns,
    mutations: [
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
