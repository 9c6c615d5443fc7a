import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { privateKeyToAccount } from "viem/accounts";
import { startAnvil } from "../../local/anvil.ts";
import { guardPool } from "../../local/anvil-pool.ts";
import { tiedToParent } from "../../local/child-process.ts";
import { type LocalChain, setUpChain } from "../../local/local-chain.ts";
import { newKey } from "../../local/networks-document.ts";
import type { StackFile } from "../../local/stack-file.ts";
import type { StackSettings } from "../../local/stack-settings.ts";
import { fundGas } from "../../local/usdc.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { waitSettled } from "./bench-payments.ts";
import { readGas, readHeight } from "./gas-used.ts";
import { createClient } from "./http-client.ts";
import { measureRate, type Rate } from "./measure-rate.ts";
import type { FacilitatorOptions } from "./peer-facilitator.ts";
import { type BenchChain, createRpc, describeRelay, signAuthorizations, watchNonce } from "./raw-evm-transfers.ts";
import { preparePayments, runPayments } from "./run-payments.ts";
import { readCounters, subtract } from "./stack-counters.ts";

/** What one contender did with so many payments at so many in flight. */
export type Measured = Rate & { payments: number; gas: number; rpcCalls: number };

/** Pays so many payments with so many in flight. */
export type Contender = (payments: number, inFlight: number) => Promise<Measured>;

/** Payments that each contender makes before its clock starts, one after the other. */
const WARM_UP = { automine: 30, interval: 5 };
/** How long a settlement of the peer may take before it counts as not paid, milliseconds. */
const GIVEN_UP_MS = 30_000;

/** Returns this service: each confirm is held until its payment is final, and the gas includes the payouts. */
export function ourContender(stack: StackFile): Contender {
  return async (payments, inFlight) => {
    const prepared = await preparePayments(stack, payments);
    await waitSettled(stack);
    const [before, from] = [await readCounters(stack, stack.evm.chain), await readHeight(stack.evm)];
    const run = await runPayments(stack, prepared, inFlight);
    await waitSettled(stack);
    const { rpcCalls } = subtract(await readCounters(stack, stack.evm.chain), before);
    const { gas } = await readGas(stack.evm, from, await readHeight(stack.evm));
    return { ...run, payments, gas, rpcCalls };
  };
}

/** Runs one contender on a chain of its own, which is set up as the one of our stack and serves no other client. */
export async function withOwnChain<T>(settings: StackSettings, run: (chain: OwnChain) => Promise<T>): Promise<T> {
  const anvil = await startAnvil();
  const endGuard = guardPool(anvil.url);
  try {
    const chain = await setUpChain(anvil, settings, () => undefined);
    const { buyers, contracts, client } = chain;
    const isAutomine = settings.ANVIL_BLOCK_TIME === undefined;
    return await run({ rpcUrl: anvil.url, token: contracts.token, buyers, client, isAutomine });
  } finally {
    endGuard();
    await anvil.close();
  }
}

type OwnChain = BenchChain & { client: LocalChain["client"]; isAutomine: boolean };

/** Returns one key that signs and sends a transaction per payment, and waits for its block. It checks and records nothing. */
export function rawContender(chain: OwnChain): Contender {
  return async (payments, inFlight) => {
    let rpcCalls = 0;
    const send = createRpc(chain.rpcUrl);
    const rpc: typeof send = (method, params) => {
      rpcCalls += 1;
      return send(method, params);
    };
    const account = await newSender(chain);
    const chainId = await chain.client.getChainId();
    const signed = await signAuthorizations(chain, chainId, payments);
    const from = await readHeight(chain);
    const isIncluded = watchNonce(() => rpc("eth_getTransactionCount", [account.address, "latest"]));
    const run = await measureRate(signed, inFlight, async (one, nonce) => {
      await rpc("eth_sendRawTransaction", [await account.signTransaction(describeRelay(chainId, one, nonce))]);
      return isIncluded.next(nonce);
    });
    isIncluded.stop();
    const { gas } = await readGas({ ...chain, relayers: [account.address] }, from, await readHeight(chain));
    return { ...run, payments, gas, rpcCalls };
  };
}

async function newSender({ client }: OwnChain) {
  const account = privateKeyToAccount(newKey().privateKey);
  await fundGas(client, [account.address]);
  return account;
}

/** Returns x402's facilitator: one `POST /settle` per payment, each with a facilitator process and an account of its own. */
export function peerContender(
  chain: OwnChain,
  peer: Pick<FacilitatorOptions, "folder" | "hasNonceManager" | "pollMs">,
): Contender {
  return async (payments, inFlight) => {
    const chainId = await chain.client.getChainId();
    const { address, privateKey } = newKey();
    await fundGas(chain.client, [address]);
    const facilitator = await startFacilitator({ ...peer, rpcUrl: chain.rpcUrl, chainId, privateKey });
    try {
      const ask = createClient(facilitator.url, {}, inFlight);
      const settle = async (body: string) => {
        const { text } = await withTimeout(ask("POST", "/settle", body), GIVEN_UP_MS, "the settlement");
        return (JSON.parse(text) as { success: boolean }).success;
      };
      const readCalls = async () =>
        (JSON.parse((await ask("GET", "/rpc-calls")).text) as { rpcCalls: number }).rpcCalls;
      const warm = await describeSettlements(chain, chainId, chain.isAutomine ? WARM_UP.automine : WARM_UP.interval);
      for (const body of warm) await settle(body);
      const bodies = await describeSettlements(chain, chainId, payments);
      const [before, from] = [await readCalls(), await readHeight(chain)];
      const run = await measureRate(bodies, inFlight, settle);
      const rpcCalls = (await readCalls()) - before;
      const { gas } = await readGas({ ...chain, relayers: [address] }, from, await readHeight(chain));
      return { ...run, payments, gas, rpcCalls };
    } finally {
      facilitator.process.kill();
      await createRpc(chain.rpcUrl)("anvil_dropAllTransactions", []);
    }
  };
}

/** Returns the bodies of `POST /settle` for payments that buyers have signed, as x402's version 2 describes them. */
async function describeSettlements(chain: BenchChain, chainId: number, count: number): Promise<string[]> {
  const signed = await signAuthorizations(chain, chainId, count);
  return signed.map(({ authorization, signature }) => {
    const { token, from, to, value, validBefore, nonce } = authorization;
    const paymentRequirements = {
      scheme: "exact",
      network: `eip155:${chainId}`,
      asset: token,
      amount: String(value),
      payTo: to,
      maxTimeoutSeconds: 3_600,
      extra: { name: "USD Coin", version: "2" },
    };
    const times = { validAfter: "0", validBefore: String(validBefore) };
    const payload = { signature, authorization: { from, to, value: String(value), ...times, nonce } };
    const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload };
    return JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements });
  });
}

async function startFacilitator(options: FacilitatorOptions): Promise<{ url: string; process: ChildProcess }> {
  const file = new URL("./peer-facilitator.ts", import.meta.url).pathname;
  const [program, line] = tiedToParent(process.execPath, [file, JSON.stringify(options)], "SIGKILL");
  const child = spawn(program, line, { stdio: ["ignore", "pipe", "inherit"] });
  const [url] = (await withTimeout(
    once(createInterface({ input: child.stdout }), "line"),
    30_000,
    "the start of x402's facilitator",
  )) as [string];
  return { url, process: child };
}
