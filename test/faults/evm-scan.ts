/**
 * Reads a chain by plain JSON-RPC and decodes it by hand. It shares no code with the service, so that an error in how
 * the service reads a chain cannot hide itself.
 */

/**
 * A Transfer log of a token. `nonce` comes from the AuthorizationUsed log directly before it on the same token, from the
 * Collector's or the Disburser's log after it, or from the 32 bytes after the call data of a transfer that its owner
 * sent. `at` is the time of its block in Unix seconds.
 */
export type ChainTransfer = {
  txHash: string;
  logIndex: number;
  token: string;
  from: string;
  to: string;
  amount: bigint;
  nonce: string | null;
  at: number;
};
/** A mined transaction; `paid` in wei per gas. */
type ChainTransaction = {
  hash: string;
  from: string;
  nonce: number;
  paid: bigint;
  gasUsed: bigint;
  input: string;
};

export type ChainScan = {
  transfers: ChainTransfer[];
  /** Every use of an authorization. */
  uses: { token: string; authorizer: string; nonce: string }[];
  /** The transactions of the requested accounts. */
  transactions: ChainTransaction[];
  /** The number of transactions of each account. */
  counts: Record<string, number>;
  /** The treasury's balance of each token. */
  held: Record<string, bigint>;
};

/** keccak256 of Transfer(address,address,uint256) and of AuthorizationUsed(address,bytes32). */
const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const usedTopic = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
/** keccak256 of Collected(address,address,uint256,uint256). */
const collectedTopic = "0xdcdcaef5de7ddddb7ef392b97e6b32c1c43fd5f5ed468fd987baaa3c5252f5f5";
/** keccak256 of Disbursed(address,address,bytes32,uint256). */
const disbursedTopic = "0x534893b5bc4e58be9b43b4aea3c1008a2de57e50854956793b9894506cfae0ca";
/** transfer(address,uint256) */
const transferSelector = "0xa9059cbb";
/** balanceOf(address) */
const balanceOf = "0x70a08231";

type Log = { address: string; topics: string[]; data: string; transactionHash: string; logIndex: string };
type Mined = { hash: string; from: string; to: string | null; nonce: string; input: string; at: number };
type Block = { timestamp: string; transactions: Omit<Mined, "at">[] };

/** Reads a chain from a block to its head: the tokens' logs, the accounts' transactions, the treasury's balances. */
export async function scanChain(args: {
  url: string;
  since: number;
  tokens: readonly string[];
  /** The contract through which Permit2 pays, where there is one. */
  collector?: string;
  /** The contract through which the treasury pays out what has no EIP-3009, where there is one. */
  disburser?: string;
  treasury: string;
  accounts: readonly string[];
}): Promise<ChainScan> {
  const ask = <T>(method: string, ...params: unknown[]) => askChain<T>(args.url, method, params);
  const head = Number(await ask<string>("eth_blockNumber"));
  const accounts = args.accounts.map((account) => account.toLowerCase());
  const address = [...args.tokens, args.collector, args.disburser].filter((one) => one !== undefined);
  const logs = await ask<Log[]>("eth_getLogs", { fromBlock: toHex(args.since), toBlock: toHex(head), address });
  const mined: Mined[] = [];
  for (let height = args.since; height <= head; height += 1) {
    const { timestamp, transactions } = await ask<Block>("eth_getBlockByNumber", toHex(height), true);
    mined.push(...transactions.map((one) => ({ ...one, at: Number(timestamp) })));
  }
  const transactions: ChainTransaction[] = [];
  for (const { hash, from, nonce, input } of mined.filter(({ from }) => accounts.includes(from.toLowerCase()))) {
    const receipt = await ask<{ effectiveGasPrice: string; gasUsed: string }>("eth_getTransactionReceipt", hash);
    transactions.push({
      hash,
      from: from.toLowerCase(),
      nonce: Number(nonce),
      input,
      paid: BigInt(receipt.effectiveGasPrice),
      gasUsed: BigInt(receipt.gasUsed),
    });
  }
  const counts: Record<string, number> = {};
  for (const account of accounts)
    counts[account] = Number(await ask<string>("eth_getTransactionCount", account, "latest"));
  const held: Record<string, bigint> = {};
  const data = `${balanceOf}${args.treasury.slice(2).toLowerCase().padStart(64, "0")}`;
  for (const token of args.tokens)
    held[token.toLowerCase()] = BigInt(await ask<string>("eth_call", { to: token, data }, "latest"));
  return { ...readLogs(logs, args, new Map(mined.map((one) => [one.hash, one]))), transactions, counts, held };
}

function readLogs(
  logs: readonly Log[],
  { collector, disburser, treasury }: { collector?: string; disburser?: string; treasury: string },
  mined: ReadonlyMap<string, Mined>,
): Pick<ChainScan, "transfers" | "uses"> {
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
    const moved = { from: toAddress(from), to: toAddress(to), amount: BigInt(log.data) };
    const transaction = mined.get(txHash);
    const transfer = { txHash, logIndex, token: log.address.toLowerCase(), ...moved, at: transaction?.at ?? 0 };
    const nonce = isPair ? (before.topics[2] ?? null) : readTag(transaction, transfer);
    return [{ ...transfer, nonce }];
  });
  for (const log of logs) {
    const [topic, token, other, nonce] = log.topics;
    const by = { token: toAddress(token), amount: BigInt(log.data === "0x" ? 0 : log.data), nonce: nonce ?? null };
    if (isAt(log, collector) && topic === collectedTopic) setNonce(transfers, log, { ...by, from: toAddress(other) });
    if (isAt(log, disburser) && topic === disbursedTopic)
      setNonce(transfers, log, { ...by, from: treasury.toLowerCase(), to: toAddress(other) });
  }
  return { transfers, uses };
}

const isAt = ({ address }: Log, contract: string | undefined) => address.toLowerCase() === contract?.toLowerCase();

type Described = { token: string; from: string; to?: string; amount: bigint; nonce: string | null };

/** Sets the nonce of the last transfer before a contract's log, in the same transaction, that matches the log. */
function setNonce(transfers: readonly ChainTransfer[], { transactionHash, logIndex }: Log, described: Described): void {
  const found = transfers.findLast(
    (one) =>
      one.txHash === transactionHash &&
      one.logIndex < Number(logIndex) &&
      one.token === described.token &&
      one.from === described.from &&
      (described.to === undefined || one.to === described.to) &&
      one.amount === described.amount,
  );
  if (found) found.nonce = described.nonce;
}

/** Returns the 32 bytes after the call data of a transfer that its owner sent to the token, or null. */
function readTag(transaction: Mined | undefined, { token, from, to }: Omit<ChainTransfer, "nonce">): string | null {
  if (transaction?.to?.toLowerCase() !== token || transaction.from.toLowerCase() !== from) return null;
  const { input } = transaction;
  const isTransfer = input.startsWith(transferSelector) && toAddress(input.slice(0, 74)) === to;
  return isTransfer && input.length === 2 + 2 * (4 + 32 + 32 + 32) ? `0x${input.slice(-64)}` : null;
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
