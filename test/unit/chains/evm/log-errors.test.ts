import { RpcRequestError } from "viem";
import { expect, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import { classifyLogError } from "../../../../chains/evm/log-errors.ts";
import { isRateLimit } from "../../../../chains/evm/rpc-errors.ts";

/** An error of a provider: who sends it, its code, its text and, if it has any, its data. */
type Sent = [provider: string, code: number, message: string, data?: unknown];

const toError = ([, code, message, data]: Sent) =>
  new ChainError("rpc_answer", {
    cause: new RpcRequestError({ body: {}, error: { code, message, data }, url: "https://rpc.example" }),
  });

/** The longest range that the text states, in blocks. The texts were reported in the issues and tests of public projects. */
const tooLarge: [Sent, number | undefined][] = [
  [
    [
      "Alchemy, logs (viem, ponder)",
      -32_602,
      "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0xdca1fe, 0xdca3f1]",
    ],
    500,
  ],
  [
    [
      "Alchemy, blocks (boundless-xyz/boundless 838)",
      -32_600,
      "You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x1a30dfd, 0x1a30ff0]",
    ],
    500,
  ],
  [["Alchemy, time (cartesi)", -32_000, "Query timeout exceeded. Consider reducing your block range."], undefined],
  [["Infura, logs (graphprotocol/graph-node 776)", -32_005, "query returned more than 1000 results"], undefined],
  [
    [
      "Infura, logs, with a range (ponder)",
      -32_005,
      "query returned more than 10000 results. Try with this block range [0xDCA1FE, 0xDCA24B].",
    ],
    78,
  ],
  [["Infura, blocks (INFURA/infura 237)", -32_602, "range 1000000 exceeds limit of 10000"], 10_000],
  [["QuickNode (OffchainLabs/arbitrum-sdk 609)", -32_614, "eth_getLogs is limited to a 10,000 range"], 10_000],
  [["QuickNode, free (viem)", -32_614, "eth_getLogs is limited to a 5 range"], 5],
  [["Ankr (ponder)", -32_600, "block range is too wide"], undefined],
  [["Ankr (rindexer)", -32_062, "Block range is too large"], undefined],
  [["Ankr, TAC (ponder)", -32_000, "maximum [from, to] blocks distance: 50000"], 50_000],
  [
    ["Chainstack (ponder)", -32_600, "Block range limit exceeded. See more details at https://docs.chainstack.com"],
    undefined,
  ],
  [["Blast (hyperindex)", -32_600, "eth_getLogs exceeds the range allowed for your plan (5000 > 3000)"], 3_000],
  [["1RPC, blocks (hyperindex)", -32_000, "eth_getLogs is limited to a 1000 blocks range"], 1_000],
  [["1RPC, bytes (ponder)", -32_000, "response size should not greater than 10000000 bytes"], undefined],
  [["BlockPI (ponder)", -32_602, "eth_getLogs is limited to 1024 block range"], 1_024],
  [["dRPC (ponder)", 35, "ranges over 10000 blocks are not supported on freetier"], 10_000],
  [["dRPC (cartesi)", 35, "ranges over 10000 blocks are not supported on free plan"], 10_000],
  [
    [
      "Cloudflare (ponder)",
      -32_047,
      "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800",
    ],
    800,
  ],
  [
    [
      "Tenderly (bobanetwork/boba_legacy 827)",
      -32_602,
      "invalid params",
      { error_id: "4ed94073-0317-4648-a167-107fba5f44b3", payload: "range 9009594 is bigger than range limit 2000" },
    ],
    2_000,
  ],
  [["thirdweb (ponder)", -32_000, "Maximum allowed number of requested blocks is 1000"], 1_000],
  [["Coinbase (ponder)", -32_005, "please limit the query to at most 1000 blocks"], 1_000],
  [["PublicNode (ponder)", -32_701, "exceed maximum block range: 50000"], 50_000],
  [["BNB Smart Chain (DefiLlama/dimension-adapters 1096)", -32_005, "limit exceeded"], undefined],
  [["Base (graph-node, ponder)", -32_600, "block range too large"], undefined],
  [["OP Mainnet (ponder)", -32_020, "backend response too large"], undefined],
  [["Arbitrum (ponder)", -32_000, "logs matched by query exceeds limit of 10000"], undefined],
  [["Arbitrum, time", -32_000, "log query timed out"], undefined],
  [["Avalanche (ponder)", -32_000, "requested too many blocks from 0 to 10000, maximum is set to 2048"], 2_048],
  [["Merkle (ponder)", -32_000, "eth_getLogs range is too large, max is 1k blocks"], 1_000],
  [["Moonbeam (moonbeam-foundation/moonbeam 3250)", -32_603, "block range is too wide (maximum 1024)"], 1_024],
  [
    [
      "Morph (enviodev/hyperindex 605)",
      -32_000,
      "block range is larger than max block range, block range = 5120, max block range = 5000",
    ],
    5_000,
  ],
  [["Scroll (scroll-tech/go-ethereum 529)", -32_000, "block range is bigger than maxBlockRange"], undefined],
  [["Sei (hyperindex)", -32_000, "block range too large (2000), maximum allowed is 1000 blocks"], 1_000],
  [["Candle (AlphaWallet/alpha-wallet-ios 5277)", -32_600, "block range too high"], undefined],
  [
    [
      "reth, logs (paradigmxyz/reth 23810)",
      -32_602,
      "query exceeds max results 20000, retry with the range 6000000-6000509",
    ],
    510,
  ],
  [["reth, blocks (paradigmxyz/reth 8558)", -32_602, "query exceeds max block range 5000"], 5_000],
  [["reth, bytes (erpc)", -32_008, "Response is too big", "Exceeded max limit of 167772160"], undefined],
  [
    [
      "Erigon, blocks (erigontech/erigon 20424)",
      -32_602,
      "query block range exceeds server limit, narrow your filter: 1000",
    ],
    1_000,
  ],
  [
    ["Erigon, logs (erigontech/erigon 19721)", -32_000, "query returns too many logs, narrow your filter: 20000"],
    undefined,
  ],
  [["Nethermind", -32_005, "Too many logs requested. Max logs per response is 20000."], undefined],
  [["Besu", -32_005, "Requested range exceeds maximum RPC range limit"], undefined],
  [["Geth behind a proxy", -32_000, "query timeout exceeded"], undefined],
  [["Frontier (darwinia-network/darwinia-common 849)", -32_603, "query timeout of 10 seconds exceeded"], undefined],
];

const rateLimits: Sent[] = [
  [
    "Alchemy",
    429,
    "Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.",
  ],
  ["Alchemy, month", 429, "Monthly capacity limit exceeded."],
  ["Infura (blockscout/blockscout 7339)", -32_005, "daily request count exceeded, request rate limited"],
  [
    "Infura (status-im/status-app 14665)",
    -32_005,
    "project ID request rate exceeded",
    { see: "https://infura.io/dashboard" },
  ],
  ["Infura (foundry-rs/foundry 10145)", 429, "Too Many Requests"],
  [
    "QuickNode (foundry-rs/foundry 4894)",
    -32_007,
    "50/second request limit reached - reduce calls per second or upgrade your account at quicknode.com",
  ],
  ["Chainstack", -32_005, "You've exceeded the RPS limit available on the current plan."],
  ["Ankr", -32_090, "Too many requests, reason: call rate limit exhausted, retry in 10s"],
  ["Tenderly (fluencelabs/dev-rewards 20)", -32_005, "rate limit exceeded"],
  ["Base (base/node 368)", -32_016, "over rate limit"],
  ["1RPC", -32_001, "Exceeded the quota usage"],
  ["Merkle", -32_005, "Rate limit exceeded"],
  ["Pocket (status-im/status-app 14665)", -32_000, "Application POKT_APP_ID has exceeded its throughput limit"],
];

const behind: Sent[] = [
  ["Geth, reth", -32_602, "block range extends beyond current head block"],
  ["Geth", -32_602, "block range extends beyond current head block: requested 125011129, head 125011127"],
  ["Geth, block hash", -32_000, "unknown block"],
  ["Erigon", -32_000, "block not found: 0x1b4"],
  ["Arbitrum", -32_000, "header not found"],
  ["Nethermind", -32_000, "One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found."],
  ["Avalanche", -32_000, "requested to block 23734227 after last accepted block 23734226"],
];

const refused: Sent[] = [
  ["Geth", 4_444, "pruned history unavailable"],
  ["Geth, topics", -32_000, "exceed max addresses or topics per search position"],
  ["Infura, topics", -32_000, "This query contains 5006 filters. The current limit is 5000."],
  ["BNB Smart Chain", -32_601, "the method eth_getLogs does not exist/is not available"],
  ["PublicNode", -32_602, "Archive requests require a personal token"],
];

const named = tooLarge.map(([sent, blocks]) => ({ provider: sent[0], sent, blocks }));
test.each(named)("the error of $provider refuses the size of a query and allows $blocks blocks", ({ sent, blocks }) => {
  expect(classifyLogError(toError(sent))).toEqual({ kind: "too_large", blocks });
});

test.each(rateLimits)("the error of %s (%i) is a rate limit, so the range is not halved", (...sent) => {
  expect(classifyLogError(toError(sent))).toEqual({ kind: "rate_limited" });
  expect(isRateLimit(toError(sent))).toBe(true);
});

test.each(behind)("the error of %s (%i) says that the node lacks a block, so the range is not halved", (...sent) => {
  expect(classifyLogError(toError(sent))).toEqual({ kind: "behind" });
});

test.each(refused)("the error of %s (%i) does not depend on the range", (...sent) => {
  expect(classifyLogError(toError(sent))).toEqual({ kind: "refused" });
});

test("other errors are unknown", () => {
  expect(classifyLogError(toError(["a node", -32_603, "internal error"]))).toEqual({ kind: "unknown" });
  expect(classifyLogError(new ChainError("rpc_unreachable"))).toEqual({ kind: "unknown" });
  const none = { kind: "too_large", blocks: undefined };
  expect(
    classifyLogError(toError(["reversed", -32_602, "block range too large: try with this block range [0x5, 0x1]"])),
  ).toEqual(none);
});

test("the text of a contract that reverts is not a rate limit", () => {
  expect(isRateLimit(toError(["a node", 3, "execution reverted: rate limit exceeded", "0x08c379a0"]))).toBe(false);
  expect(isRateLimit(toError(["a node", -32_000, "execution reverted: too many requests"]))).toBe(false);
});
