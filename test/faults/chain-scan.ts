/**
 * What a chain says, asked by plain JSON-RPC and read by hand: nothing here is shared with the service, so that a
 * mistake in how the service reads a chain cannot hide itself.
 */

/** A Transfer log of a token; `nonce` is that of the AuthorizationUsed log directly before it on the same token. */
export type ChainTransfer = {
  txHash: string;
  logIndex: number;
  token: string;
  from: string;
  to: string;
  amount: bigint;
  nonce: string | null;
};
/** A transaction that stands in a block; `paid` in wei per gas. */
export type ChainTransaction = { hash: string; from: string; nonce: number; paid: bigint };

export type ChainScan = {
  transfers: ChainTransfer[];
  /** Every use of an authorization. */
  uses: { token: string; authorizer: string; nonce: string }[];
  /** Of the accounts that were asked about. */
  transactions: ChainTransaction[];
  /** Transactions an account has made, by account. */
  counts: Record<string, number>;
  /** What the treasury holds, by token. */
  held: Record<string, bigint>;
};

/** keccak256 of Transfer(address,address,uint256) and of AuthorizationUsed(address,bytes32). */
const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const usedTopic = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
/** balanceOf(address) */
const balanceOf = "0x70a08231";

type Log = { address: string; topics: string[]; data: string; transactionHash: string; logIndex: string };
type Block = { transactions: { hash: string; from: string; nonce: string }[] };

/** Reads a chain from a block to its head: the tokens' logs, the accounts' transactions, the treasury's balances. */
export async function scanChain(args: {
  url: string;
  since: number;
  tokens: readonly string[];
  treasury: string;
  accounts: readonly string[];
}): Promise<ChainScan> {
  const ask = <T>(method: string, ...params: unknown[]) => askChain<T>(args.url, method, params);
  const head = Number(await ask<string>("eth_blockNumber"));
  const accounts = args.accounts.map((account) => account.toLowerCase());
  const filter = { fromBlock: toHex(args.since), toBlock: toHex(head), address: args.tokens };
  const logs = await ask<Log[]>("eth_getLogs", filter);
  const mined: { hash: string; from: string; nonce: string }[] = [];
  for (let height = args.since; height <= head; height += 1)
    mined.push(...(await ask<Block>("eth_getBlockByNumber", toHex(height), true)).transactions);
  const transactions: ChainTransaction[] = [];
  for (const { hash, from, nonce } of mined.filter(({ from }) => accounts.includes(from.toLowerCase()))) {
    const receipt = await ask<{ effectiveGasPrice: string }>("eth_getTransactionReceipt", hash);
    transactions.push({
      hash,
      from: from.toLowerCase(),
      nonce: Number(nonce),
      paid: BigInt(receipt.effectiveGasPrice),
    });
  }
  const counts: Record<string, number> = {};
  for (const account of accounts)
    counts[account] = Number(await ask<string>("eth_getTransactionCount", account, "latest"));
  const held: Record<string, bigint> = {};
  const data = `${balanceOf}${args.treasury.slice(2).toLowerCase().padStart(64, "0")}`;
  for (const token of args.tokens)
    held[token.toLowerCase()] = BigInt(await ask<string>("eth_call", { to: token, data }, "latest"));
  return { ...readLogs(logs), transactions, counts, held };
}

function readLogs(logs: readonly Log[]): Pick<ChainScan, "transfers" | "uses"> {
  const uses = logs.flatMap(({ address, topics }) =>
    topics[0] === usedTopic
      ? [{ token: address.toLowerCase(), authorizer: toAddress(topics[1]), nonce: topics[2] ?? "" }]
      : [],
  );
  const at = new Map(logs.map((log) => [placeOf(log.transactionHash, Number(log.logIndex)), log]));
  const transfers = logs.flatMap((log): ChainTransfer[] => {
    const [topic, from, to] = log.topics;
    if (topic !== transferTopic) return [];
    const [txHash, logIndex] = [log.transactionHash, Number(log.logIndex)];
    const before = at.get(placeOf(txHash, logIndex - 1));
    const isPair = before?.topics[0] === usedTopic && before.address === log.address && before.topics[1] === from;
    const nonce = isPair ? (before.topics[2] ?? null) : null;
    const moved = { from: toAddress(from), to: toAddress(to), amount: BigInt(log.data) };
    return [{ txHash, logIndex, token: log.address.toLowerCase(), ...moved, nonce }];
  });
  return { transfers, uses };
}

const placeOf = (txHash: string, logIndex: number) => `${txHash} ${logIndex}`;
const toAddress = (topic = "") => `0x${topic.slice(-40).toLowerCase()}`;
const toHex = (height: number) => `0x${height.toString(16)}`;

async function askChain<T>(url: string, method: string, params: readonly unknown[]): Promise<T> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { result, error } = (await response.json()) as { result: T; error?: { message: string } };
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
}
