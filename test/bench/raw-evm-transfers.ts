import { setTimeout as pause } from "node:timers/promises";
import { type Hex, hexToNumber, keccak256, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type Authorization, domainSeparator, encodeTransfer, hashAuthorization } from "../../chains/evm/eip3009.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { waitFor } from "../support/wait-for.ts";
import { runPool } from "./bench-stats.ts";

/** The amount of each raw transfer, minor units. */
const AMOUNT = 10_000n;
const GAS = 150_000n;
/** The time without a new nonce after which a transaction counts as lost, milliseconds. */
const STALLED_MS = 1_500;
/** The number of receipts that are read: the last ones, whose storage slots have been written before. */
const RECEIPTS_READ = 20;
/** How often the nonce of a key is read while relays wait for their block, milliseconds. */
const NONCE_POLL_MS = 5;
const FEES = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };

/**
 * Runs the reference: one key with local nonces, without database, queue and checks. Signs and sends one relay per
 * authorization until the last one is mined. `inFlight` says what the concurrency counts: requests, so that nothing waits for
 * blocks, or relays until their block, as payments are counted. Returns the relays per second, and their gas.
 */
export async function runRaw(
  stack: StackFile,
  args: { payments: number; concurrency: number; inFlight: "requests" | "relays" },
): Promise<{ perSecond: number; gas: number }> {
  const rpc = createRpc(stack.evm.rpcUrl);
  const chainId = hexToNumber((await rpc("eth_chainId", [])) as Hex);
  const [relayer] = stack.evm.buyers;
  if (!relayer) throw new Error("the stack has no buyers");
  const account = privateKeyToAccount(relayer.privateKey as Hex);
  const authorizations = await signAuthorizations(stack.evm, chainId, args.payments);

  const first = hexToNumber((await rpc("eth_getTransactionCount", [account.address, "pending"])) as Hex);
  const readNonce = () => rpc("eth_getTransactionCount", [account.address, "latest"]);
  const included = args.inFlight === "relays" ? watchNonce(readNonce) : undefined;
  const begun = performance.now();
  const sent: Hex[] = [];
  const hashes = await runPool(authorizations, args.concurrency, async (authorization, index) => {
    sent[index] = await account.signTransaction(describeRelay(chainId, authorization, first + index));
    const hash = (await rpc("eth_sendRawTransaction", [sent[index]])) as Hex;
    await included?.next(first + index);
    return hash;
  }).finally(() => included?.stop());
  await waitMined(rpc, { address: account.address, first, sent });
  const seconds = (performance.now() - begun) / 1000;
  const ends = await Promise.all(hashes.slice(-RECEIPTS_READ).map((hash) => readReceipt(rpc, hash)));
  if (ends.some(({ status }) => status !== "0x1"))
    throw new Error("a raw relay failed on chain, so the reference is invalid");
  const gas = ends.reduce((sum, { gasUsed }) => sum + hexToNumber(gasUsed), 0) / ends.length;
  return { perSecond: args.payments / seconds, gas };
}

/** Returns the transaction that relays one authorization. */
export function describeRelay(chainId: number, { authorization, data }: Signed, nonce: number) {
  return { type: "eip1559" as const, chainId, nonce, to: authorization.token, data, gas: GAS, ...FEES };
}

/** A chain with a token and funded buyers, as stack.json describes it. */
export type BenchChain = {
  rpcUrl: string;
  token: string;
  buyers: readonly { address: string; privateKey: string }[];
};

/** An authorization of a buyer with its signature, and the call that relays both. */
export type Signed = { authorization: Authorization; signature: Hex; data: Hex };

/** Signs transfers of the buyers to the last of them, before the measurement starts, as in the measured run. */
export async function signAuthorizations(chain: BenchChain, chainId: number, count: number): Promise<Signed[]> {
  const token = chain.token as Hex;
  const separator = domainSeparator({ name: "USD Coin", version: "2", chainId, verifyingContract: token });
  const to = chain.buyers.at(-1)?.address as Hex;
  const payers = chain.buyers.slice(2, -1);
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const payer = payers[index % payers.length];
      if (!payer) throw new Error("the chain has too few buyers");
      const authorization = {
        token,
        from: payer.address as Hex,
        to,
        value: AMOUNT,
        validBefore: 4_102_444_800,
        nonce: keccak256(toHex(`raw ${performance.now()} ${Math.random()} ${index}`)),
      };
      const signature = await privateKeyToAccount(payer.privateKey as Hex).sign({
        hash: hashAuthorization(separator, authorization),
      });
      return { authorization, signature, data: encodeTransfer(authorization, signature) };
    }),
  );
}

/** Makes one JSON-RPC call. Throws the error of the response. */
export type RawRpc = (method: string, params: unknown[]) => Promise<unknown>;

/** Returns a JSON-RPC client that does nothing else. */
export function createRpc(url: string): RawRpc {
  let id = 0;
  return async (method, params) => {
    id += 1;
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    const answer = (await response.json()) as { result?: unknown; error?: { message: string } };
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  };
}

/** Reads a receipt. Anvil counts a nonce as used a moment before it shows the receipt. */
async function readReceipt(rpc: RawRpc, hash: Hex): Promise<{ status: Hex; gasUsed: Hex }> {
  const read = () => rpc("eth_getTransactionReceipt", [hash]) as Promise<{ status: Hex; gasUsed: Hex } | null>;
  return waitFor(async () => (await read()) ?? undefined, { within: 10_000, what: `the receipt of ${hash}` });
}

/** Waits for the last nonce, and sends again what the node has lost. */
async function waitMined(rpc: RawRpc, args: { address: Hex; first: number; sent: readonly Hex[] }): Promise<void> {
  const { address, first, sent } = args;
  let before = first;
  for (let since = performance.now(); ; ) {
    const count = hexToNumber((await rpc("eth_getTransactionCount", [address, "latest"])) as Hex);
    if (count >= first + sent.length) return;
    if (count > before) [before, since] = [count, performance.now()];
    else if (performance.now() - since > STALLED_MS) {
      // An Anvil that mines per transaction may leave executable ones in its queue for good, and refuses them as known.
      await rpc("anvil_dropAllTransactions", []);
      for (const bytes of sent.slice(count - first))
        await rpc("eth_sendRawTransaction", [bytes]).catch(() => undefined);
      await rpc("evm_mine", []);
      since = performance.now();
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Polls the nonce of a key. `next` returns true once the transaction with that nonce is in a block. */
export function watchNonce(readNonce: () => Promise<unknown>) {
  const waiting: { nonce: number; resolve: (isIncluded: boolean) => void }[] = [];
  let isStopped = false;
  const poll = async () => {
    for (; !isStopped; await pause(NONCE_POLL_MS)) {
      // A node that does not answer is asked again.
      const nonce = Number(await readNonce().catch(() => 0));
      for (let index = waiting.length - 1; index >= 0; index -= 1)
        if ((waiting[index]?.nonce ?? nonce) < nonce) waiting.splice(index, 1)[0]?.resolve(true);
    }
  };
  void poll();
  return {
    next: (nonce: number) => new Promise<boolean>((resolve) => waiting.push({ nonce, resolve })),
    stop: () => {
      isStopped = true;
    },
  };
}
