// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const startChain = ["test/integration/transfers/evm/start-chain.test.ts"];

/** Mutations of relaying, watching and confirming on EVM. */
export const transferMutations: readonly MutationGroup[] = [
  {
    file: "transfers/check-unfinished.ts",
    tests: ["test/integration/transfers/check-unfinished.test.ts"],
    mutations: [
      {
        name: "confirms that wait become transfers of a kind that the asset no longer has",
        find: "(await listWaitingKinds(db)).flatMap(",
        replace: "[].flatMap(",
      },
    ],
  },
  {
    file: "transfers/evm/send-batch.ts",
    tests: ["test/integration/transfers/evm/drive-lanes.test.ts"],
    mutations: [
      {
        name: "a lane signs more than its window allows",
        find: "work.taken >= chain.network.laneWindow || ",
        replace: "",
        tests: [
          "test/integration/transfers/evm/several-lanes.test.ts",
          "test/integration/transfers/evm/lane-funds.test.ts",
          "test/integration/transfers/evm/drive-lanes.test.ts",
        ],
      },
      {
        name: "payments share transactions although shared ones burn gas",
        find: ' || (areAlone && row.purpose === "payment")',
        replace: "",
        tests: ["test/integration/transfers/evm/hostile-payer-code.test.ts"],
      },
      {
        name: "a lane sends more while a broadcast has no response",
        find: " || work.unanswered > 0",
        replace: "",
        tests: ["test/integration/transfers/evm/lost-responses.test.ts"],
      },
      {
        name: "a transaction is sent before it is stored",
        find: "if (!(await storeSigned(deps, chain, lease,",
        replace: "await broadcastBytes(chain, bytes);\n  if (!(await storeSigned(deps, chain, lease,",
        tests: ["test/integration/transfers/evm/drive-lanes.test.ts"],
      },
      {
        name: "a lane continues after the node has refused a broadcast",
        find: 'if (broadcast.outcome !== "accepted") return "blocked";',
        replace: "",
        justification: "the next pass finds the broadcast without a response and stops before it signs anything",
        tests: ["test/integration/transfers/evm/lost-responses.test.ts"],
      },
      {
        name: "transfers that fail are held before the others are sent",
        find: "  await attemptAll([\n    async () => {",
        replace: "  await attemptAll([\n    handleFailed,\n    async () => {",
        tests: ["test/integration/transfers/evm/failed-transfers-last.test.ts"],
      },
      {
        name: "transfers that fail are not held when the others cannot be sent",
        find: "await attemptAll([",
        replace:
          "await (async (steps: (() => Promise<unknown>)[]) => {\n    for (const step of steps) await step();\n  })([",
        tests: ["test/integration/transfers/evm/failed-transfers-last.test.ts"],
      },
    ],
  },
  {
    file: "transfers/evm/store-signed.ts",
    tests: ["test/integration/transfers/evm/drive-lanes.test.ts"],
    mutations: [
      {
        name: "a lane stores a transaction under a nonce that another owner has used",
        find: "if (!ours) return { ok: false };",
        replace: "",
        tests: ["test/integration/transfers/evm/lane-takeover.test.ts"],
      },
      {
        name: "a lane sends a batch with a transfer that another lane has taken",
        find: "return { ok: assigned.length === rows.length };",
        replace: "return { ok: true };",
        tests: ["test/integration/transfers/evm/lane-takeover.test.ts"],
      },
    ],
  },
  {
    file: "transfers/match-movements.ts",
    tests: ["test/unit/transfers/evm/read-blocks.test.ts", "test/integration/transfers/evm/drive-lanes.test.ts"],
    mutations: [
      {
        name: "a movement of another payer matches a transfer",
        find: "    one.payer === other.payer &&\n",
        replace: "",
        tests: ["test/integration/transfers/evm/drive-lanes.test.ts"],
      },
      {
        name: "a movement to another receiver matches a transfer",
        find: "    one.receiver === other.receiver &&\n",
        replace: "",
      },
      {
        name: "a movement of another amount matches a transfer",
        find: "one.amount === other.amount",
        replace: "true",
      },
      {
        name: "a movement of another token matches a transfer",
        find: "    one.token === other.token &&\n",
        replace: "",
      },
      {
        name: "a movement with another nonce matches a transfer",
        find: "log.authorizationNonce === transfer.authorization_nonce",
        replace: "true",
      },
    ],
  },
  {
    file: "chains/evm/multicall.ts",
    tests: ["test/integration/transfers/evm/refused-simulations.test.ts"],
    mutations: [
      {
        name: "payouts are sent one by one while an endpoint answers that all of them fail together",
        find: "isAnswered && outcomes[index]",
        replace: "outcomes[index]",
      },
    ],
  },
  {
    file: "chains/evm/match-authorizations.ts",
    tests: ["test/unit/chains/evm/match-authorizations.test.ts"],
    mutations: [
      {
        name: "a movement before the only authorization is not the authorization's",
        find: " ?? used[0])",
        replace: ")",
      },
      {
        name: "a nonce that is used for nothing takes the movement of the authorization before it",
        find: "amount > 0n || payer !== treasury",
        replace: "amount > 0n",
      },
      {
        name: "a stranger's transfers of zero change the nonces of payouts",
        find: "({ amount, payer }) => amount > 0n || payer !== treasury",
        replace: "() => true",
      },
      {
        name: "a nonce that is used last takes the movement of the authorization before it",
        find: "isBefore(transfers[0], used[0]) && ",
        replace: "",
      },
      {
        name: "a nonce counts for several movements into the treasury",
        find: "one === deposit || one.receiver !== treasury",
        replace: "true",
      },
      {
        name: "a nonce counts for a later movement into the treasury than the authorization's own",
        find: "deposits.find((one) => one.logIndex > logIndex) ?? ",
        replace: "",
      },
      {
        name: "the issuer's fee of a payout has the payout's nonce",
        find: "if (payer === treasury) return",
        replace: "if (false) return",
      },
    ],
  },
  {
    file: "chains/evm/transfer-logs.ts",
    tests: ["test/unit/chains/evm/transfer-logs.test.ts"],
    mutations: [
      {
        name: "a movement that our contract has named counts for an authorization",
        find: "transfers.filter(({ authorizationNonce }) => authorizationNonce === null)",
        replace: "transfers",
      },
    ],
  },
  {
    file: "transfers/evm/authorization-use.ts",
    tests: ["test/integration/transfers/evm/nonces-used-for-nothing.test.ts"],
    mutations: [
      {
        name: "a movement that no reading showed is not found in a transaction whose receipt is too large",
        find: "readLogsOf(chain, hash, [{ blockId, token, payer }])",
        replace: "readLogsOf(chain, hash, blockId && token && payer ? [] : [])",
        tests: ["test/integration/transfers/evm/missed-logs.test.ts"],
      },
      {
        name: "the movement of another authorization in the same transaction is found for a transfer",
        find: "movements.find((log) => isProof(log, transfer))",
        replace: "movements.find((log) => log.amount === transfer.amount)",
      },
    ],
  },
  {
    file: "transfers/record-movements.ts",
    tests: ["test/integration/transfers/evm/lane-takeover.test.ts"],
    mutations: [
      {
        name: "money that went to a merchant beside a transfer that was never sent is dropped",
        find: ' || waiting.has(log.authorizationNonce ?? "")',
        replace: "",
        tests: ["test/integration/payments/lifecycle/replaced-when-final.test.ts"],
      },
      {
        name: "an ended transfer matches money that arrives late",
        find: 'state !== "ended" && !standing.has(id)',
        replace: "!standing.has(id)",
        tests: ["test/integration/transfers/evm/lane-takeover.test.ts"],
      },
      {
        name: "a transfer becomes included by a movement that is booked as an exception",
        find: "transfer && assigned.has(transfer.id) ? transfer : []",
        replace: "transfer ?? []",
        tests: ["test/integration/transfers/evm/expire-authorizations.test.ts"],
      },
      {
        name: "an included transfer matches a second movement",
        find: 'state !== "ended" && !standing.has(id)',
        replace: 'state !== "ended"',
        tests: ["test/integration/payments/lifecycle/pushes.test.ts"],
      },
      {
        name: "the time of a movement is not recorded, and money from after the deadline pays",
        find: "moved_at: log.at ?? null",
        replace: "moved_at: null",
        tests: ["test/integration/payments/lifecycle/replaced-when-final.test.ts"],
      },
      {
        name: "one transfer matches two movements of the same block",
        find: "if (transfer) open.delete(transfer);",
        replace: "",
        justification: "the unique key rejects the second match, and the movements are then stored one by one",
        tests: ["test/integration/payments/lifecycle/pushes.test.ts"],
      },
      {
        name: "movements between third parties are recorded",
        find: "return transfer || isKept ? ",
        replace: "return true ? ",
        tests: ["test/integration/transfers/watch-pass.test.ts"],
      },
      {
        name: "a transfer whose movement could not be stored is sent again",
        find: "assigned.filter((row) => !failed.some((log) => isProof(log, row)))",
        replace: "assigned",
        tests: ["test/integration/payments/accounting/failed-bookings.test.ts"],
      },
    ],
  },
  {
    file: "transfers/evm/verify-push.ts",
    tests: ["test/integration/payments/options/quote-rows.test.ts"],
    mutations: [
      {
        name: "a confirm of a push whose money is booked as an exception is accepted",
        find: "if (await hasBooked(deps.db, chain.chain, made))",
        replace: "if (false)",
      },
      {
        name: "a confirm of a push whose token has kept a part of the amount is accepted",
        find: "if (made.length === 0) return",
        replace: "if (false) return",
        tests: ["test/integration/payments/lifecycle/pushes.test.ts"],
      },
    ],
  },
  {
    file: "chains/evm/account-code.ts",
    tests: ["test/integration/transfers/evm/simulate-wallets.test.ts"],
    mutations: [
      {
        name: "the check of a factory's call has no gas limit",
        find: ", gas: numberToHex(gas) }",
        replace: " }",
      },
    ],
  },
  {
    file: "transfers/evm/wallet-code.ts",
    tests: ["test/integration/payments/lifecycle/payer-accounts.test.ts"],
    mutations: [
      {
        name: "a wallet that is not deployed and holds native money counts as deployed",
        find: "hash !== NO_CODE_HASH && ",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/evm/simulate-wallets.ts",
    tests: ["test/integration/transfers/evm/simulate-wallets.test.ts"],
    mutations: [
      {
        name: "a factory's call that does not deploy the payer is made",
        find: "outcome.ok && deployment && !(await",
        replace: "false && deployment && !(await",
        tests: ["test/integration/payments/lifecycle/payer-accounts.test.ts"],
      },
      {
        name: "a stranger's garbage costs a second call of a factory",
        find: "outcome.ok && deployment && !(await",
        replace: "deployment && !(await",
      },
    ],
  },
  {
    file: "transfers/evm/verify-authorizations.ts",
    tests: ["test/integration/payments/lifecycle/payer-accounts.test.ts"],
    mutations: [
      {
        name: "a plain key's own signature that names a factory reads the chain",
        find: 'if (payer === "key" && checkKey(chain, { ...signed, proof: signature }).ok)',
        replace: "if (false)",
      },
      {
        name: "a transfer that another relayer has made admits any call of a factory",
        find: "if (!deployment && (await isObserved",
        replace: "if ((await isObserved",
        tests: ["test/integration/transfers/evm/simulate-wallets.test.ts"],
      },
      {
        name: "a factory is called for an account without the money",
        find: "open.filter(({ one }) => !found.refused.has(one.payer) && funds.holds(one))",
        replace: "open.filter(({ one }) => !found.refused.has(one.payer))",
        tests: ["test/integration/transfers/evm/simulate-wallets.test.ts"],
      },
      {
        name: "a signature that names a factory inside of another one is accepted",
        find: "if (deployment && unwrapSignature(signature).deployment)",
        replace: "if (false)",
      },
    ],
  },
  {
    file: "transfers/evm/wallet-results.ts",
    tests: ["test/integration/payments/lifecycle/payer-accounts.test.ts"],
    mutations: [
      {
        name: "a factory is called for a wallet that has code",
        find: "verified?.deployed && isHex(proof) ?",
        replace: "false && isHex(proof) ?",
      },
    ],
  },
  {
    file: "transfers/list-burned.ts",
    tests: ["test/integration/payments/lifecycle/gas-burning-wallets.test.ts"],
    mutations: [
      {
        name: "gas that a contract wallet takes while it pays counts for no limit",
        find: "const greedy = excess > 0n ?",
        replace: "const greedy = false ?",
      },
      {
        name: "a contract wallet that pays may take all gas of its transactions",
        find: "const WALLET_SHARE = 2n",
        replace: "const WALLET_SHARE = 1n",
      },
    ],
  },
  {
    file: "db/queries/burned-gas.ts",
    tests: ["test/integration/payments/lifecycle/gas-burning-wallets.test.ts"],
    mutations: [
      {
        name: "transfers whose payments wait for money to be final take the place of those that no lane sends",
        find: 'and not ${isAwaitingMoney("t", args.now)}\n',
        replace: "\n",
        tests: ["test/integration/db/queries/expired-transfers.test.ts"],
      },
      {
        name: "a greedy wallet's transaction that moved the money counts as one without a transfer",
        find: "count(*) filter (where not b.moved)::int",
        replace: "count(*)::int",
      },
    ],
  },
  {
    file: "transfers/evm/lane-nonce.ts",
    tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
    mutations: [
      {
        name: "an endpoint that garbles nonces keeps lanes from skipping used ones",
        find: " || isUnreadable(error)",
        replace: "",
      },
    ],
  },
  {
    file: "chains/evm/readable-answers.ts",
    tests: ["test/integration/transfers/asset-backfills.test.ts"],
    mutations: [
      {
        name: "an endpoint that garbles logs or receipts stops the backfill of an asset",
        find: "read(rpc).catch(passOnUnreadable)",
        replace: "read(rpc)",
      },
      {
        name: "an endpoint that garbles blocks keeps reorgs from being followed",
        find: "read(rpc).catch(passOnUnreadable)",
        replace: "read(rpc)",
        tests: ["test/integration/transfers/evm/incomplete-endpoint.test.ts"],
      },
      {
        name: "an endpoint that garbles heights or nonces stops a chain or its lanes",
        find: "read(rpc).catch(passOnUnreadable)",
        replace: "read(rpc)",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
    ],
  },
  {
    file: "chains/evm/blocks.ts",
    tests: ["test/integration/transfers/evm/incomplete-endpoint.test.ts"],
    mutations: [
      {
        name: "a block with a time that no date holds stops a chain",
        find: "if (Number.isNaN(at.getTime())) throw",
        replace: "if (false) throw",
      },
      {
        name: "a block with a fee that cannot be stored stops a chain",
        find: "if (value > maxUint256) throw",
        replace: "if (value > maxUint256 && false) throw",
      },
      {
        name: "a block with a hash that cannot be stored stops a chain",
        find: "if (!isHash(hash)) throw",
        replace: "if (!isHash(hash) && false) throw",
      },
    ],
  },
  {
    file: "chains/evm/open-endpoints.ts",
    tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
    mutations: [
      {
        name: "an endpoint whose chain id cannot be read keeps the next one from being asked",
        find: "if (isSilence(cause)) throw cause;",
        replace: "throw cause;",
      },
    ],
  },
  {
    file: "chains/errors.ts",
    tests: ["test/unit/transfers/evm/incomplete-endpoints.test.ts"],
    mutations: [
      {
        name: "an error of the chain that is thrown while an answer is parsed loses its code",
        find: "if (cause instanceof ChainError) throw cause;",
        replace: "",
      },
      {
        name: "a malformed answer counts as a bug",
        find: 'throw new ChainError("rpc_answer", { cause: new',
        replace: 'throw cause ?? new ChainError("rpc_answer", { cause: new',
      },
    ],
  },
  {
    file: "transfers/evm/two-endpoint-agreement.ts",
    tests: ["test/integration/payments/payouts/restored-payouts.test.ts"],
    mutations: [
      {
        name: "an endpoint's malformed answer keeps all movements from being booked",
        find: 'return "silent";\n    });',
        replace: "throw err;\n    });",
        tests: ["test/integration/payments/lifecycle/beside-strangers.test.ts"],
      },
      {
        name: "a large payment waits for ever for an endpoint that returns no logs and was once slow",
        find: "if (hasAnswered(error)) tooLargeOf(view.rpc).drop(hash);",
        replace: "",
        tests: ["test/integration/transfers/evm/large-receipts.test.ts"],
      },
      {
        name: "a large payment whose receipt is too large for the endpoints is never confirmed",
        find: "if (!isTooLarge(error)) throw error;",
        replace: "throw error;",
        tests: ["test/integration/transfers/evm/large-receipts.test.ts"],
      },
      {
        name: "a receipt that is too large suspends its endpoint in each pass",
        find: "if (known.find(hash)) return undefined;",
        replace: "",
        tests: ["test/integration/transfers/evm/large-receipts.test.ts"],
      },
      {
        name: "a large adopted payout that paid more than it owed is never confirmed",
        find: ", amount: one.observed_amount",
        replace: "",
      },
      {
        name: "a movement that one endpoint invents after the first reading is booked",
        find: "if (!isLarge && !movement.recorded_late) return true;",
        replace: "if (!isLarge) return true;",
        tests: ["test/integration/transfers/evm/second-reading.test.ts"],
      },
    ],
  },
  {
    file: "transfers/evm/confirm-final.ts",
    tests: ["test/integration/transfers/evm/missed-logs.test.ts"],
    mutations: [
      {
        name: "a receipt that one of three endpoints refuses stops a chain",
        find: "if (!isTransientChainError(error)) throw error;",
        replace: "if (!(error instanceof ChainError)) throw error;",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
      {
        name: "payments wait until strangers' movements are booked",
        find: "  await confirm();\n  const unmatched",
        replace: "  const unmatched",
        tests: ["test/integration/payments/lifecycle/beside-strangers.test.ts"],
      },
      {
        name: "a payment that other money pays once it is final waits for another block",
        find: "if (await bookUnmatched(deps, chain, unmatched)) await confirm();",
        replace: "await bookUnmatched(deps, chain, unmatched);",
        tests: ["test/integration/payments/lifecycle/replace-unsent.test.ts"],
      },
      {
        name: "a second reading ignores a missing log",
        find: "const gone = proofs.find(",
        replace: "const gone = [].find(",
      },
      {
        name: "a second reading that shows another amount agrees with the first one",
        find: "return !log || !isSameMovement(log, proof);",
        replace: "return !log;",
        tests: ["test/integration/transfers/evm/second-reading.test.ts"],
      },
      {
        name: "a movement that only the second reading shows is not recorded",
        find: "await recordMissingMovements(deps,",
        replace: "if (false) await recordMissingMovements(deps,",
        tests: ["test/integration/transfers/evm/lagging-nodes.test.ts"],
      },
      {
        name: "a height that two endpoints of three have not reached is confirmed after a wait",
        find: "} else if (afterWait !== run.to) return endWaitForSecond(chain);",
        replace: "}",
        tests: ["test/integration/transfers/evm/three-endpoint-finality.test.ts"],
      },
      {
        name: "the wait for a second endpoint goes on while two others agree",
        find: "return endWaitForSecond(chain);",
        replace: "return;",
        tests: ["test/integration/transfers/evm/three-endpoint-finality.test.ts"],
      },
      {
        name: "heights that have not been read are marked final",
        find: "Math.min(height, cursor.number)",
        replace: "height",
        tests: [
          "test/integration/transfers/evm/confirm-final.test.ts",
          "test/integration/transfers/evm/lagging-nodes.test.ts",
        ],
      },
    ],
  },
  {
    file: "transfers/evm/read-blocks.ts",
    tests: ["test/unit/transfers/evm/read-blocks.test.ts"],
    mutations: [
      {
        name: "a block counts although its parent is not the previous block",
        find: "if (block.parentHash !== (linked.at(-1)?.hash ?? hash)) break;",
        replace: "",
      },
      {
        name: "a pass reads all of its blocks or none",
        find: "else if (leading.length > 0 && result.reason",
        replace: "else if (false && result.reason",
        tests: ["test/integration/transfers/evm/realistic-provider.test.ts"],
      },
      {
        name: "a reading that an endpoint broke off reads as many blocks again before their receipts",
        find: "brokenOff.get(chain.rpc) === from.blockId ? from.number + 1 : to",
        replace: "to",
        tests: ["test/integration/transfers/evm/many-deposits.test.ts"],
      },
      {
        name: "a response without the logs of the service's own transaction is accepted",
        find: "if (missing) throw new ChainError(",
        replace: "if (false) throw new ChainError(",
        tests: ["test/integration/transfers/evm/lagging-nodes.test.ts"],
      },
      {
        name: "a receipt from another block counts",
        find: "!receipt || !blocks.some((block) => block.hash === receipt.blockHash)",
        replace: "!receipt",
        tests: ["test/integration/transfers/evm/lagging-nodes.test.ts"],
      },
    ],
  },
  {
    file: "transfers/evm/read-gap.ts",
    tests: ["test/integration/transfers/evm/calls-per-block.test.ts"],
    mutations: [
      {
        name: "a range is confirmed without a second reading",
        find: "isRange: true",
        replace: "isRange: false",
      },
      {
        name: "every part of a gap reads the receipts of all transactions in flight",
        find: "receipts.get(chain.rpc) ?? (await",
        replace: "undefined ?? (await",
        tests: ["test/integration/payments/lifecycle/downtime.test.ts"],
      },
    ],
  },
  {
    file: "transfers/evm/watched-accounts.ts",
    tests: ["test/integration/payments/payouts/direct.test.ts"],
    mutations: [
      {
        name: "every transfer of a stranger to a direct destination costs a receipt",
        find: "const offered = await keepOffered(db, { chain: chain.chain, movements: others });",
        replace: "const offered = others;",
      },
    ],
  },
  {
    file: "chains/evm/account-logs.ts",
    tests: ["test/unit/chains/evm/account-logs.test.ts"],
    mutations: [
      {
        name: "transfers out of the treasury are not read",
        find: "{ address: tokens, topics: [[TRANSFER_TOPIC], [pad(treasury)]] },",
        replace: "",
      },
      {
        name: "only the first accounts are read",
        find: "...parts.map((some)",
        replace: "...parts.slice(0, 1).map((some)",
      },
    ],
  },
  {
    file: "chains/evm/log-ranges.ts",
    tests: ["test/unit/chains/evm/log-ranges.test.ts"],
    mutations: [
      {
        name: "a single block that is refused is asked for again for ever",
        find: "if (blocks === 1) return undefined;",
        replace: "",
      },
      {
        name: "a rate limit shortens the range",
        find: 'if (reason.kind !== "too_large") return undefined;',
        replace: "",
      },
    ],
  },
  {
    file: "chains/evm/read-logs.ts",
    tests: ["test/integration/transfers/evm/realistic-provider.test.ts"],
    mutations: [
      {
        name: "a block whose logs are refused counts as empty",
        find: 'if (kind === "refused") throw new ChainError("logs_refused", { cause, detail });',
        replace: 'if (kind === "refused") return [];',
      },
      {
        name: "a single block with too many logs is not read by its receipts",
        find: 'if (kind === "too_large" && isSingle(blocks))',
        replace: "if (false)",
      },
    ],
  },
  {
    file: "transfers/evm/recover-lanes.ts",
    tests: ["test/integration/transfers/evm/recover-lanes.test.ts"],
    mutations: [
      {
        name: "a nonce is given up although the endpoint that has its receipt lacks the method",
        find: "isUnavailable(error) && !isEndpointError(error)",
        replace: "isUnavailable(error)",
        tests: ["test/integration/transfers/evm/missed-receipts.test.ts"],
      },
      {
        name: "a nonce that the service's own transaction has used is abandoned",
        find: "if (found.length > 0) {",
        replace: "if (found.length < 0) {",
        tests: ["test/integration/transfers/evm/missed-receipts.test.ts"],
      },
      {
        name: "a nonce is abandoned although the block that used it is not final",
        find: "if (!(await isNoncePassed(deps, chain, { address, nonce: row.nonce, cursor: reading.cursor }))) continue;",
        replace: "",
      },
      {
        name: "a transaction whose tip every endpoint refuses is never replaced",
        find: 'outcome === "underpriced" && ',
        replace: "!outcome && ",
        tests: ["test/integration/transfers/evm/refused-tips.test.ts"],
      },
      {
        name: "a transaction is replaced as soon as its tip is refused",
        find: " && isRefusedForLong(deps, chain, row, at.cursor)",
        replace: "",
        tests: ["test/integration/transfers/evm/refused-tips.test.ts"],
      },
      {
        name: "a chain without blocks raises the fees of its lanes",
        find: "return cursor.number - row.signed_height >= blocks;",
        replace: "return true;",
        tests: ["test/integration/transfers/evm/halted-chain.test.ts"],
      },
      {
        name: "a late transaction is broadcast to the endpoint that passes none on alone",
        find: 'row.state === "accepted" ? "all" : "first_to_accept"',
        replace: '"first_to_accept"',
        tests: ["test/integration/transfers/evm/swallowed-broadcasts.test.ts"],
      },
      {
        name: "an original is never broadcast again after its replacement",
        find: "if (isRefusal(outcome)) await broadcastFormer(deps, chain, row, at.baseFee);",
        replace: "",
        tests: ["test/integration/transfers/evm/refused-replacement.test.ts"],
      },
      {
        name: "bytes of a nonce whose transfers were unassigned are broadcast again",
        find: 'twin.state !== "replaced" && ',
        replace: "",
        tests: ["test/integration/transfers/evm/refused-replacement.test.ts"],
      },
      {
        name: "a replacement that was stored after its original became final blocks its lane",
        find: 'if (twins.some(({ state }) => state === "final")) {',
        replace: "if (twins.length < 0) {",
        tests: ["test/integration/transfers/evm/frozen-replacement.test.ts"],
      },
    ],
  },
  {
    file: "transfers/evm/replace-transaction.ts",
    tests: ["test/integration/transfers/evm/recover-lanes.test.ts"],
    mutations: [
      {
        name: "a replacement is signed under another nonce",
        find: "    nonce: row.nonce,\n    ...payload,",
        replace: "    nonce: row.nonce + 1,\n    ...payload,",
      },
      {
        name: "a replacement is sent without being stored",
        find: "await insertTransaction(db, next);",
        replace: "",
      },
      {
        name: "a watcher that another one has overtaken stores a replacement",
        find: "if (!(await advanceCursor(db, cursor, { ...cursor, leaseMs: WATCH_LEASE_MS }))) return false;",
        replace: "",
        tests: ["test/integration/transfers/evm/frozen-replacement.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/lane-work.ts",
    tests: ["test/integration/transfers/evm/refused-replacement.test.ts"],
    mutations: [
      {
        name: "a lane stops because a replacement is refused while its original is accepted",
        find: " and not bool_or(state = 'accepted')",
        replace: "",
      },
    ],
  },
  {
    file: "chains/evm/evm-broadcast.ts",
    tests: ["test/unit/chains/evm/evm-broadcast.test.ts"],
    mutations: [
      {
        name: "bytes that the first endpoint refuses are broadcast to no other one",
        find: 'if (to === "one" || by === undefined) return first;',
        replace: 'if (to !== "all" || by === undefined) return first;',
      },
      {
        name: "late bytes that the first endpoint accepts are broadcast to no other one",
        find: ' && to !== "all"',
        replace: "",
      },
      {
        name: "a used nonce that another endpoint reports does not decide",
        find: "nonce_too_low: 2",
        replace: "nonce_too_low: 0",
      },
      {
        name: "a pool that is full does not raise a lane's tip",
        find: "|pool.*(full|overflow)",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/evm/gas-fees.ts",
    tests: ["test/unit/transfers/evm/gas-fees.test.ts"],
    mutations: [
      {
        name: "a lane pays more than the ceiling",
        find: "if (baseFee + maxPriorityFeePerGas > policy.maxFeePerGas) return undefined;",
        replace: "",
      },
      {
        name: "a replacement pays more than the ceiling",
        find: "if (least > policy.maxFeePerGas) return undefined;",
        replace: "",
      },
      {
        name: "a rollup's charge does not count in the ceiling",
        find: "policy.maxFeePerGas - (charge + gas - 1n) / gas",
        replace: "policy.maxFeePerGas",
      },
      {
        name: "a gas price has to pay the base fee and itself",
        find: 'feeModel === "legacy" ? 0n : fees.maxPriorityFeePerGas',
        replace: "fees.maxPriorityFeePerGas",
        tests: [
          "test/unit/transfers/evm/gas-fees.test.ts",
          "test/unit/transfers/evm/lane-holds.test.ts",
          "test/integration/transfers/evm/transaction-cost.test.ts",
        ],
      },
      {
        name: "a replacement keeps a tip below the one of the networks file",
        find: "raised > policy.priorityFeePerGas ? raised : policy.priorityFeePerGas",
        replace: "raised",
      },
      { name: "a replacement pays no more than before", find: "(fee * 1125n) / 1000n + 1n", replace: "fee" },
    ],
  },
  {
    file: "transfers/evm/price-batch.ts",
    tests: ["test/unit/transfers/evm/price-batch.test.ts"],
    mutations: [
      {
        name: "a batch offers more than nodes take",
        find: "cut.length > 1 && 2n",
        replace: "cut.length < 0 && 2n",
      },
      {
        name: "a batch leaves no room for a higher fee",
        find: "2n * offerOf",
        replace: "1n * offerOf",
      },
      {
        name: "a transfer is sent that cannot pay its tip within the most that a transaction may offer",
        find: " || isPricedOut(fees, baseFee, feeModel) ? undefined",
        replace: " ? undefined",
      },
    ],
  },
  {
    file: "transfers/evm/price-transaction.ts",
    tests: ["test/integration/transfers/evm/transaction-cost.test.ts"],
    mutations: [
      {
        name: "a replacement offers more than nodes take",
        find: "limit(deductCharge(fees, { charge: wei, gas }))",
        replace: "deductCharge(fees, { charge: wei, gas })",
        tests: ["test/integration/transfers/evm/transaction-fee-cap.test.ts"],
      },
      {
        name: "a lane's gas money is not compared with a rollup's charge",
        find: "const most = 2n * charge;",
        replace: "const most = 0n * charge;",
      },
    ],
  },
  {
    file: "transfers/evm/multicall-batch.ts",
    tests: ["test/unit/transfers/evm/multicall-batch.test.ts"],
    mutations: [
      {
        name: "a transfer that must be sent alone is batched",
        find: "if (item.alone) continue;",
        replace: "",
      },
      {
        name: "a batch exceeds its gas limit",
        find: "if (left < 0 && batch.length > 0) break;",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/evm/follow-reorg.ts",
    tests: ["test/integration/transfers/evm/follow-reorg.test.ts"],
    mutations: [
      {
        name: "transactions that a reorg removed stay included",
        find: "await revertIncluded(db, { chain: chain.chain, above });",
        replace: "",
      },
      {
        name: "movements that a reorg removed stay valid",
        find: "const ids = await orphanObservations(db, { chain: chain.chain, above });",
        replace: "const ids: string[] = [];",
      },
    ],
  },
  {
    file: "transfers/endpoint-waits.ts",
    tests: ["test/integration/transfers/evm/second-reading.test.ts"],
    mutations: [
      {
        name: "a second endpoint that is behind for a moment is skipped because it once was",
        find: "if (since && reached >= since.height) waits.delete(of);",
        replace: "",
      },
      {
        name: "a second endpoint that is stuck stops the chain",
        find: "return now - since.at >= maxBehindMs(blockMs)",
        replace: "return now - since.at < 0",
      },
    ],
  },
  {
    file: "transfers/evm/final-heights.ts",
    tests: ["test/integration/transfers/evm/final-heights.test.ts"],
    mutations: [
      {
        name: "a transfer is confirmed one block before it is final",
        find: "cursor.number - blocks + 1",
        replace: "cursor.number - blocks + 2",
        tests: ["test/integration/transfers/watch-pass.test.ts"],
      },
      {
        name: "the first endpoint's old final block stops the chain",
        find: "if (known.height !== undefined && !isDue) return { height: known.height, by };",
        replace: "if (known.height !== undefined) return { height: known.height, by };",
      },
      {
        name: "a first endpoint without a final block stops the chain",
        find: "if (isUnavailable(error) || !isTransientChainError(error)) throw error;",
        replace: "throw error;",
      },
      {
        name: "a height that one endpoint alone reports as final counts at once",
        find: "if (!hasWaitedLongEnough(deps, wait, heights)) return",
        replace: "if (hasWaitedLongEnough(deps, wait, heights) && false) return",
      },
      {
        name: "two endpoints that agree wait for the first one",
        find: "return { height: atOnce, by: undefined };",
        replace: "return { height: known.height ?? cursor.finalNumber, by: undefined };",
      },
      {
        name: "heights that one endpoint alone has reported are not counted",
        find: "deps.metrics.singleEndpointConfirmations.inc({ chain: chain.chain });",
        replace: "",
      },
      {
        name: "the second endpoint is asked in every pass while the first one is a block behind",
        find: "if (known.ahead !== undefined) compareFirst(deps, chain, { known, other: known.ahead });",
        replace: "",
      },
      {
        name: "a height of one endpoint alone counts because another one did not answer an hour ago",
        find: "    loneHeights.delete(endpoints);\n    return",
        replace: "    return",
        tests: ["test/integration/transfers/evm/three-endpoint-finality.test.ts"],
      },
      {
        name: "an endpoint confirms the final height that it alone has reported",
        find: "isDue) return { height: known.height, by };",
        replace: "isDue) return { height: known.height, by: undefined };",
        tests: ["test/integration/transfers/evm/three-endpoint-finality.test.ts"],
      },
      {
        name: "an endpoint confirms by blocks that it alone has",
        find: "by: source?.source_endpoint ?? undefined",
        replace: "by: source && undefined",
        tests: ["test/integration/transfers/evm/three-endpoint-finality.test.ts"],
      },
    ],
  },
  {
    file: "transfers/decide-final-height.ts",
    tests: ["test/unit/transfers/decide-final-height.test.ts"],
    mutations: [
      {
        name: "one endpoint of three decides after a wait what is final",
        find: "reported.length > 2 ? second : highest",
        replace: "highest",
      },
      {
        name: "one endpoint of three decides at once what is final",
        find: "atOnce: second",
        replace: "atOnce: highest",
      },
      {
        name: "two endpoints of which one is stuck confirm nothing more",
        find: "reported.length > 2 ?",
        replace: "reported.length > 1 ?",
      },
    ],
  },
  {
    file: "transfers/evm/expire-authorizations.ts",
    tests: [
      "test/integration/transfers/evm/missed-logs.test.ts",
      "test/integration/transfers/evm/expire-authorizations.test.ts",
    ],
    mutations: [
      {
        name: "a transfer whose authorization was used ends without a search for its movement",
        find: "if (view.used.has(transfer.id)) {",
        replace: "if (false) {",
      },
      {
        name: "a transfer ends although its token does not report whether it was made",
        find: "if (view.unknown.has(transfer.id)) continue;",
        replace: "",
        tests: ["test/integration/transfers/evm/expire-authorizations.test.ts"],
      },
      {
        name: "transfers that cannot be decided take the turn of later ones in every pass",
        find: "const after = lastChecked.get(chain.endpoints);",
        replace: "const after = undefined;",
        tests: ["test/integration/transfers/evm/expire-authorizations.test.ts"],
      },
      {
        name: "a long search for a movement holds the watcher until it is complete",
        find: "isFirst || (!signal.aborted && now().getTime() < until);",
        replace: "isFirst || !signal.aborted;",
        tests: ["test/integration/transfers/evm/expire-authorizations.test.ts"],
      },
      {
        name: "a long search for a movement holds a watcher that must end",
        find: "(!signal.aborted && now().getTime() < until);",
        replace: "now().getTime() < until;",
        tests: ["test/integration/transfers/evm/expire-authorizations.test.ts"],
      },
      {
        name: "a long search for a movement begins again in every pass",
        find: "ofTransfer.get(rpc) ?? all;",
        replace: "all;",
        tests: ["test/integration/transfers/evm/expire-authorizations.test.ts"],
      },
      {
        name: "a transfer whose movement is booked as an exception never ends",
        find: "if (await hasBooked(deps.db, chain.chain, [made]))",
        replace: "if (false)",
        tests: ["test/integration/payments/options/quote-rows.test.ts"],
      },
      {
        name: "the event of a payment whose money is booked as an exception says that its authorization was not used",
        find: "{ reason: BOOKED, book",
        replace: "{ reason: UNUSED, book",
        tests: ["test/integration/payments/options/quote-rows.test.ts"],
      },
      {
        name: "one endpoint that garbles logs keeps a movement that another one shows from being found",
        find: "if (!isTransientChainError(error)) throw error;",
        replace: "throw error;",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
      {
        name: "a large transfer ends by the search of one endpoint while another one garbles logs",
        find: "transfer.amount) && answered < ASKED_ENDPOINTS)",
        replace: "transfer.amount) && answered + failures.length < ASKED_ENDPOINTS)",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
      {
        name: "one endpoint that garbles logs keeps transfers from ending",
        find: "answered === 0 || !isLasting(error)",
        replace: "true",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
      {
        name: "one endpoint that has deleted logs keeps transfers from ending",
        find: ' || (error instanceof ChainError && error.code === "logs_refused")',
        replace: "",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
      {
        name: "one endpoint of three keeps large transfers from ending",
        find: "for (let index = 0; answered < ASKED_ENDPOINTS; index += 1)",
        replace: "for (let index = 0; index < ASKED_ENDPOINTS; index += 1)",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
      {
        name: "one endpoint without contracts keeps transfers from ending",
        find: "if (error instanceof ChainError) return undefined;",
        replace: "if (isTransientChainError(error)) return undefined;",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
      {
        name: "a transfer ends before all blocks have been searched for its movement",
        find: "if (left.to >= left.from) return;",
        replace: "",
        tests: ["test/integration/transfers/evm/expire-authorizations.test.ts"],
      },
    ],
  },
  {
    file: "chains/evm/inspector.ts",
    tests: ["test/integration/chains/evm/inspector.test.ts"],
    mutations: [
      {
        name: "calls that are too large for init code are sent",
        find: "if (data.length / 2 - 1 > MAX_INIT_CODE) return undefined;",
        replace: "",
      },
      {
        name: "an endpoint that refuses the call makes the caller fail",
        find: "if (!(error instanceof RangeError || (error instanceof ChainError",
        replace: "if (!(error instanceof RangeError && (error instanceof ChainError",
      },
      {
        name: "an outcome of the calls counts as a refusal of the endpoint",
        find: "if (findRevertData(error) === undefined && !isOutOfGas(error)) ",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/evm/oracle-screening.ts",
    tests: ["test/integration/transfers/evm/failures-among-others.test.ts"],
    mutations: [
      {
        name: "an oracle's answer that fails among transfers holds the payments",
        find: " || !answers.slice(reads.length).every(({ ok }) => ok)",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/evm/block-pass.ts",
    tests: ["test/integration/transfers/evm/stale-announcement.test.ts"],
    mutations: [
      {
        name: "a chain that a restored database does not know is read from near its head",
        find: "since ? await findHeight(readTime, { newest, at: since }) : newest",
        replace: "newest",
        tests: startChain,
      },
      {
        name: "an announced block is used with the logs of another endpoint",
        find: "rpc === head.newest?.rpc ? head.newest.block : undefined",
        replace: "head.newest?.block",
      },
      {
        name: "stored bytes are not sent in a pass whose reading an endpoint breaks off",
        find: "if (otherChain.length > 0) throw otherChain[0];",
        replace: "if (errors.length > 0) throw errors[0];",
        tests: ["test/integration/transfers/evm/lost-responses.test.ts"],
      },
    ],
  },
  {
    file: "transfers/evm/passed-nonces.ts",
    tests: ["test/integration/transfers/evm/recover-lanes.test.ts"],
    mutations: [
      {
        name: "a foreign transaction counts as final before its block is",
        find: "if (reading.number <= cursor.finalNumber) return true;",
        replace: "return true;",
      },
      {
        name: "a nonce that cannot be parsed counts as used by a foreign transaction",
        find: "parseAnswer(() => hexToNumber(count))",
        replace: "[hexToNumber, parseAnswer].length && Number(count)",
        tests: ["test/integration/transfers/evm/malformed-answers.test.ts"],
      },
      {
        name: "the nonce is read at each new block, which is never final",
        find: "isUsable ? former : await",
        replace: "await",
      },
      {
        name: "a nonce counts as used at a block that a reorg has removed",
        find: "former !== undefined && (await isStored(deps, chain, former))",
        replace: "former !== undefined",
      },
    ],
  },
  {
    file: "transfers/evm/incomplete-endpoints.ts",
    tests: ["test/integration/transfers/evm/incomplete-endpoint.test.ts"],
    mutations: [
      {
        name: "an endpoint without a receipt is waited for without end",
        find: " || now - since >= maxBehindMs(network.blockMs)",
        replace: "",
      },
      {
        name: "an endpoint that lags for a moment is passed over",
        find: "known?.isPassedOver === true || now - since >= maxBehindMs(network.blockMs)",
        replace: "true",
      },
      {
        name: "an endpoint without receipts is waited for at each block",
        find: "if (hasContent || !known?.isPassedOver) shortfalls.delete(rpc);",
        replace: "shortfalls.delete(rpc);",
      },
      {
        name: "an endpoint that returns an error for a receipt is waited for without end",
        find: "return error instanceof BaseError && !isUnavailable(error);",
        replace: "return false;",
      },
      {
        name: "an endpoint whose answer cannot be read is waited for without end",
        find: ' || error.code === "rpc_answer"',
        replace: "",
      },
    ],
  },
  {
    file: "transfers/evm/read-gap.ts",
    tests: ["test/integration/transfers/evm/incomplete-endpoint.test.ts"],
    mutations: [
      {
        name: "a gap is read with the receipts of another endpoint",
        find: "receipts.get(chain.rpc) ?? (await readInFlight(deps, chain))",
        replace: "[...receipts.values()][0] ?? (await readInFlight(deps, chain))",
      },
    ],
  },
  {
    file: "chains/evm/http-transport.ts",
    tests: ["test/integration/chains/evm/http-transport.test.ts"],
    mutations: [
      {
        name: "an answer that is too large suspends its endpoint",
        find: "if (cause instanceof errors.ResponseExceededMaxSizeError)",
        replace: "if (cause === errors)",
      },
    ],
  },
  {
    file: "chains/evm/transaction-movements.ts",
    tests: ["test/integration/transfers/evm/large-receipts.test.ts"],
    mutations: [
      {
        name: "a receipt that the endpoint refuses as too large holds up the watcher",
        find: "if (block === undefined || !isTooLarge(cause)) throw cause;",
        replace: "if (block !== undefined) throw cause;",
      },
      {
        name: "a reading that an endpoint broke off asks for the same receipts again",
        find: "keepMovements(chain, keyed);",
        replace: "",
        tests: ["test/integration/transfers/evm/many-deposits.test.ts"],
      },
    ],
  },
  {
    file: "transfers/decline-transfer.ts",
    tests: ["test/integration/transfers/ended-transfers.test.ts"],
    mutations: [
      {
        name: "a payment fails with its payer's screening although other money waits to be final",
        find: "if (!(await lockEndable(db, [row.id], deps.now())).has(row.id)) return undefined;",
        replace: "",
        tests: ["test/integration/payments/lifecycle/replaced-when-final.test.ts"],
      },
      {
        name: "money is bound to a transfer that has ended, and is never booked",
        find: "return { ok: moved.length > 0, isMade: true };",
        replace: "return { ok: true, isMade: true };",
      },
    ],
  },
  {
    file: "db/queries/transfers.ts",
    tests: ["test/integration/transfers/ended-transfers.test.ts"],
    mutations: [
      {
        name: "a transfer ends while the watcher assigns its money to it",
        find: 'selectAuthorized(db, args).orderBy("id").forUpdate().execute()',
        replace: "selectAuthorized(db, args).execute()",
      },
    ],
  },
  {
    file: "db/queries/payment-moves.ts",
    tests: ["test/integration/transfers/asset-backfills.test.ts"],
    mutations: [
      {
        name: "a payment expires while an asset is read that was gone for more than a day",
        find: "and u.until is null and u.since",
        replace: "and u.since",
      },
    ],
  },
  {
    file: "db/queries/payment-moves.ts",
    tests: ["test/integration/payments/lifecycle/chains-of-other-workers.test.ts"],
    mutations: [
      {
        name: "a worker expires a payment on a chain that only other workers have",
        find: "o.chain <> all(${rules.chains}) and c.due_at < ${rules.goneSince}",
        replace: "o.chain <> all(${rules.chains})",
      },
    ],
  },
  {
    file: "payments/options/list-options.ts",
    tests: ["test/integration/payments/options/new-chains.test.ts"],
    mutations: [
      {
        name: "a chain is offered that no worker has started",
        find: "await keepWatched(deps, priced)",
        replace: "priced",
      },
    ],
  },
  {
    file: "payments/lifecycle/gone-chains.ts",
    tests: ["test/integration/payments/lifecycle/chains-of-other-workers.test.ts"],
    mutations: [
      {
        name: "a worker refuses a confirm on a chain that only other workers have",
        find: "if (unknown.size === 0) return attempts;",
        replace: "return attempts;",
      },
      {
        name: "a confirm of test mode on a chain that no worker has ever had waits for ever",
        find: "times.get(option.chain) ?? attempt.created_at",
        replace: "times.get(option.chain) ?? since",
      },
      {
        name: "jobs of a removed chain end without an error",
        find: "?? Infinity) < toGoneSince",
        replace: "?? Infinity) < 0 * toGoneSince",
        tests: ["test/integration/workers/handlers.test.ts"],
      },
      {
        name: "jobs of a chain fail that no worker has begun to watch",
        find: "?.getTime() ?? Infinity) <",
        replace: "?.getTime() ?? 0) <",
        tests: ["test/integration/workers/handlers.test.ts"],
      },
    ],
  },
  {
    file: "transfers/evm/claim-batch.ts",
    tests: ["test/integration/transfers/evm/claim-batch.test.ts"],
    mutations: [
      {
        name: "lanes send for a barred payer with a plain key",
        find: "hasBurners ? [...(await readGasRules(deps, chain, { forLane: false })).barred] : []",
        replace: "[]",
      },
      {
        name: "a payer has several payments in flight while payments share no transactions",
        find: "const oneEach = mustSendAlone(chain, sharedBurned);",
        replace: "const oneEach = mustSendAlone(chain, sharedBurned) && hasBurners;",
      },
    ],
  },
  {
    file: "transfers/evm/payer-funds.ts",
    tests: ["test/integration/transfers/evm/payer-funds.test.ts"],
    mutations: [
      {
        name: "payments through Permit2 are accepted beyond the payer's allowance",
        find: "      if (rest > 0n && allowed !== undefined && allowed < one.amount + rest) return INSUFFICIENT_ALLOWANCE;\n",
        replace: "",
      },
      {
        name: "a payment is refused for an allowance that its own permit grants",
        find: "if (rest > 0n && allowed",
        replace: "if (allowed",
      },
    ],
  },
  {
    file: "payments/lifecycle/accept-attempts.ts",
    tests: ["test/integration/payments/lifecycle/accept-attempts.test.ts"],
    mutations: [
      {
        name: "a confirm is refused because an earlier one of its payment is not accepted",
        find: "if (!tried.has(whole.payment.id) && !chosen.includes(whole)) raced.add(whole);",
        replace: "if (tried.size < 0) raced.add(whole);",
      },
    ],
  },
  {
    file: "transfers/evm/dry-run.ts",
    tests: ["test/integration/transfers/evm/drive-lanes.test.ts"],
    mutations: [
      {
        name: "a transfer that fails only among others is held",
        find: "outcomes: await retryFailedAlone(chain.rpc, at, batch, together) }",
        replace: "outcomes: together as CallOutcome[] }",
        tests: ["test/integration/transfers/evm/failures-among-others.test.ts"],
      },
      {
        name: "a screened payer's transfer is declined although a third party has relayed it",
        find: "if (!(await claimExistingMovement(deps, row))) await declineTransfer(",
        replace: "await declineTransfer(",
      },
      {
        name: "a transfer that fails because a third party has relayed it is not matched",
        find: 'if (row.purpose === "payment") return claimExistingMovement(deps, row);',
        replace: 'if (row.purpose === "payment") return false;',
      },
      {
        name: "a transfer that would fail is sent",
        find: "if (isRefused || !outcome?.ok) {",
        replace: "if (isRefused || !outcome) {",
      },
      {
        name: "transfers that fail beside another one of their account are sent with it",
        find: "mayFailTogether(member, outcome) && spending.has(accountOf(member))",
        replace: "false",
        tests: ["test/integration/transfers/evm/overspent-accounts.test.ts"],
      },
      {
        name: "transfers of one account that all fail among others are sent together",
        find: "      spending.add(accountOf(member));\n",
        replace: "",
        tests: ["test/integration/transfers/evm/failures-among-others.test.ts"],
      },
      {
        name: "payouts are sent one by one while the endpoint refuses to simulate them together",
        find: ' || (among === "unknown" && row.purpose === "payment")',
        replace: ' || among === "unknown"',
        tests: ["test/integration/transfers/evm/refused-simulations.test.ts"],
      },
      {
        name: "payments of one account are sent together while the endpoint refuses to simulate them together",
        find: ' || (among === "unknown" && row.purpose === "payment")',
        replace: "",
        tests: ["test/integration/transfers/evm/refused-simulations.test.ts"],
      },
      {
        name: "the transfer of a payer who has become a contract is batched",
        find: "return batch.filter((member) => !isWallet(member));",
        replace: "return batch;",
        tests: ["test/integration/transfers/evm/hostile-payer-code.test.ts"],
      },
    ],
  },
  {
    file: "db/queries/transfer-moves.ts",
    tests: ["test/integration/transfers/evm/lane-takeover.test.ts"],
    mutations: [
      {
        name: "a transfer is declined although it was assigned before and may still land",
        find: "to_state in ('assigned', 'included')",
        replace: "false",
      },
      {
        name: "a transfer whose transaction may still land is signed again after a reorg",
        find: 'to: "assigned", where: isStillAssigned',
        replace: 'to: "assigned", where: sql`false`',
        tests: ["test/integration/transfers/evm/follow-reorg.test.ts"],
      },
    ],
  },
  {
    file: "transfers/adopt-payouts.ts",
    tests: ["test/integration/payments/payouts/restored-payouts.test.ts"],
    mutations: [
      {
        name: "a payout of another amount is adopted before it is final",
        find: "if (!isExact && !movement.booked) return { ok: false };",
        replace: "",
      },
      {
        name: "a payout that is already on the chain is sent again",
        find: "return rows.filter((row) => !made.has(row.authorization_nonce));",
        replace: "return [...rows];",
      },
      {
        name: "payouts that a lost payout has left short wait for ten minutes after its adoption",
        find: "await wakeShortPayouts(deps.db, row.chain);",
        replace: "",
        tests: ["test/integration/payments/payouts/restored-inventory.test.ts"],
      },
      {
        name: "an adoption that throws stops the other transfers of its chain",
        find: ".catch((error: unknown) => holdUnprocessable(deps, row, error))",
        replace: "",
        tests: ["test/integration/payments/payouts/failing-adoption.test.ts"],
      },
      {
        name: "a payout that a reorg has moved is adopted, and its exception stays",
        find: "movement.booked || (await moveBookings(db, row.chain, [movement])).length > 0",
        replace: "movement.booked",
        tests: ["test/integration/payments/payouts/reorged-payouts.test.ts"],
      },
    ],
  },
  {
    file: "transfers/caught-up.ts",
    tests: ["test/integration/payments/payouts/settle.test.ts"],
    mutations: [
      {
        name: "the treasury signs with data that was read before the process started",
        find: "at > deps.startedAt &&",
        replace: "true &&",
      },
      {
        name: "the treasury signs while the watcher is behind",
        find: "<= WATCH_FRESH_MS",
        replace: "<= Number.POSITIVE_INFINITY",
      },
      {
        name: "the treasury signs before the chain has been read again after lost commits",
        find: "(await findUnreadEpoch(deps.db, chain)) ? undefined : epoch",
        replace: "epoch",
        tests: [
          "test/integration/payments/payouts/restored-signatures.test.ts",
          "test/integration/payments/payouts/restored-payouts.test.ts",
        ],
      },
    ],
  },
  {
    file: "transfers/database-epoch.ts",
    tests: ["test/integration/transfers/database-epoch.test.ts"],
    mutations: [
      {
        name: "a transaction is stored in another epoch than the one in which it was decided",
        find: "epochs.some((epoch) => epoch !== row.id) || ",
        replace: "",
      },
      {
        name: "a decreased commit count is not treated as lost commits",
        find: 'row.count < floor ? "count" : undefined',
        replace: "undefined",
      },
      {
        name: "the last count of a restored database is overwritten before it is compared",
        find: "await check();\n      const count = await countUnlessRecent(db);",
        replace: "const count = await countUnlessRecent(db);\n      await check();",
      },
    ],
  },
  {
    file: "db/epoch.ts",
    tests: startChain,
    mutations: [
      {
        name: "a second restore within a week hides since when the first one lost commits",
        find: "case when ${isSearched} then lost_since else counted_at end",
        replace: "counted_at",
      },
      {
        name: "a chain that is added long after a restore is read from the restored moment",
        find: "from database_epoch where ${isSearched}",
        replace: "from database_epoch where began_at is not null",
      },
      {
        name: "a chain whose clock is behind is read from a block after the restored moment",
        find: "lost_since - make_interval(hours => ${SKEW_HOURS})",
        replace: "lost_since",
      },
    ],
  },
  {
    file: "chains/find-height.ts",
    tests: ["test/unit/chains/find-height.test.ts"],
    mutations: [
      {
        name: "a block without a known time counts as earlier than any time",
        find: "time !== undefined && time <= at",
        replace: "time === undefined || time <= at",
      },
    ],
  },
  {
    file: "transfers/start-transfers.ts",
    tests: startChain,
    mutations: [
      {
        name: "a chain's cursor is created before a restore is detected",
        find: "await deps.epoch.check();",
        replace: "",
      },
    ],
  },
  {
    file: "transfers/evm/watch-tokens.ts",
    tests: ["test/integration/payments/lifecycle/abnormal-networks.test.ts"],
    mutations: [
      {
        name: "an upgraded token is not reported",
        find: "code === known.first ? 0 : 1",
        replace: "0",
      },
    ],
  },
  {
    file: "chains/evm/token-states.ts",
    tests: ["test/integration/payments/lifecycle/abnormal-networks.test.ts"],
    mutations: [
      {
        name: "the code that a proxy names is not compared",
        find: "concat([...targets, ...(await readCodeHashes(rpc, [token, ...targets]))])",
        replace: "concat(await readCodeHashes(rpc, [token]))",
      },
      {
        name: "one endpoint alone has a refund held",
        find: "if (shown.includes(isBlocked)) return isBlocked;",
        replace: "return isBlocked;",
        tests: ["test/integration/payments/payouts/issuer-blocklist.test.ts"],
      },
      {
        name: "the only endpoint that answers has a refund held",
        find: "if (chain.endpoints.length === 1) return true;",
        replace: "return true;",
        tests: ["test/integration/payments/payouts/issuer-blocklist.test.ts"],
      },
    ],
  },
];
