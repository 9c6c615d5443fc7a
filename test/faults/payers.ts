import { setTimeout as pause } from "node:timers/promises";
import { type Address, encodeFunctionData, type Hex, type PrivateKeyAccount, parseAbi, parseSignature } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { usdcAbi } from "../../ops/local/artifacts.ts";
import { operator } from "../../ops/local/chain-client.ts";
import { newKey } from "../../ops/local/networks-document.ts";
import { fundGas, mintUsdc, usdcBalance } from "../../ops/local/usdc.ts";
import type { Buyer, PayOption, WalletResult } from "../../ops/local/wallet.ts";
import { atEnd } from "../support/at-end.ts";
import { type EvmStage, finalityBlocks } from "./evm-stage.ts";
import type { Plan } from "./plan.ts";
import type { Random } from "./random.ts";

/** Buyers on one chain, and those who get in their way. */
export type Payers = {
  /** CAIP-2 */
  chain: string;
  buyerOf(plan: Plan): Buyer;
  /** What the plan has in store for a payment that was signed. */
  disturb(plan: Plan, signed: Signed): Promise<void>;
  /** Takes that back, where the plan says so. */
  relent(plan: Plan, signed: Signed): void;
};
export type Signed = { option: PayOption; results: WalletResult[] };

const listAbi = parseAbi([
  "function blacklist(address)",
  "function unBlacklist(address)",
  "function isBlacklisted(address) view returns (bool)",
]);
/** Above any spike of the run, and before everybody else in a block. */
const fees = { gas: 300_000n, maxFeePerGas: 300_000_000_000n, maxPriorityFeePerGas: 5_000_000_000n };
const strangers = 8;
const commonBuyers = 24;
const unitsPerCent = 10_000n;
/** A transaction that has not come into so many blocks was lost. */
const patienceBlocks = 3n;

/** What the token's operator sees to: `data` is sent until `holds` says so, for longer than a reorg is deep. */
type Wish = { holds(): Promise<boolean>; data: Hex; sentAt?: bigint; heldAt?: bigint };

/** Makes and funds everybody before anything is broken. Common buyers never run dry; those in trouble have just enough. */
export async function makePayers(stage: EvmStage, all: readonly Plan[], random: Random): Promise<Payers> {
  const plans = all.filter(({ family }) => family === "evm");
  const { client, contracts } = stage;
  const { token } = contracts;
  const fresh = () => privateKeyToAccount(newKey().privateKey);
  const common = Array.from({ length: commonBuyers }, fresh);
  const own = new Map(
    plans.filter(({ kind }) => /blocked|spent/.test(kind)).map((plan) => [plan.index, { plan, buyer: fresh() }]),
  );
  const others = Array.from({ length: strangers }, fresh);
  const addresses = (accounts: readonly PrivateKeyAccount[]) => accounts.map(({ address }) => address);
  await mintUsdc(client, token, addresses(common), 1_000_000_000_000n);
  for (const { plan, buyer } of own.values())
    await mintUsdc(client, token, [buyer.address], BigInt(plan.cents) * unitsPerCent);
  await fundGas(client, addresses([...others, ...[...own.values()].map(({ buyer }) => buyer)]));

  const wishes = new Map<string, Wish>();
  const serving = new AbortController();
  const served = serveWishes(stage, wishes, serving.signal);
  atEnd(async () => {
    serving.abort();
    await served;
  });
  const isBlocked = (who: Address) =>
    client.readContract({ address: token, abi: listAbi, functionName: "isBlacklisted", args: [who] });
  const buyerOf = ({ index }: Plan) => own.get(index)?.buyer ?? (common[index % common.length] as PrivateKeyAccount);
  /** Puts a payer on the token's block list, or takes it off. Holds through reorgs. */
  const block = (who: Address, on: boolean) => {
    const data = encodeFunctionData({ abi: listAbi, functionName: on ? "blacklist" : "unBlacklist", args: [who] });
    wishes.set(who, { holds: async () => (await isBlocked(who)) === on, data });
  };
  /** Gives a payer that has spent its money the same amount again. Holds through reorgs. */
  const refill = (who: Address, amount: bigint) => {
    const data = encodeFunctionData({ abi: usdcAbi, functionName: "mint", args: [who, amount] });
    wishes.set(who, { holds: async () => (await usdcBalance(client, token, who)) >= amount, data });
  };
  /** The payer sends all its money to somebody else. */
  const spend = async (buyer: PrivateKeyAccount) => {
    const amount = await usdcBalance(client, token, buyer.address);
    const to = others[0]?.address ?? operator.address;
    const data = encodeFunctionData({ abi: usdcAbi, functionName: "transfer", args: [to, amount] });
    await client.sendTransaction({ account: buyer, to: token, data, ...fees });
  };
  /** Somebody who is none of ours submits a payer's signed authorization. */
  const relay = async (option: PayOption, signature: Hex) => {
    const data = encodeRelay(option, signature);
    // Before ours in the block, or after it.
    const maxPriorityFeePerGas = random.pick([100_000_000n, 5_000_000_000n]);
    await client.sendTransaction({ account: random.pick(others), to: token, data, ...fees, maxPriorityFeePerGas });
  };
  return {
    chain: stage.id,
    buyerOf,
    async disturb(plan, { option, results }) {
      const buyer = buyerOf(plan);
      if (plan.kind === "stranger") await relay(option, results[0]?.data[0] as Hex);
      if (plan.kind.startsWith("blocked")) block(buyer.address, true);
      if (plan.kind.startsWith("spent")) await spend(buyer);
    },
    relent(plan, { option }) {
      const buyer = buyerOf(plan);
      if (plan.kind === "blocked") block(buyer.address, false);
      if (plan.kind === "spent") refill(buyer.address, BigInt(option.amount.value));
    },
  };
}

/** One transaction at a time; one that a reorg or a full pool has taken is sent again. */
async function serveWishes(stage: EvmStage, wishes: Map<string, Wish>, signal: AbortSignal): Promise<void> {
  const { client, contracts } = stage;
  while (!signal.aborted) {
    for (const [who, wish] of wishes) {
      const serve = async () => {
        const head = await client.getBlockNumber();
        if (await wish.holds()) {
          wish.heldAt ??= head;
          if (head - wish.heldAt > finalityBlocks && wishes.get(who) === wish) wishes.delete(who);
          return;
        }
        delete wish.heldAt;
        if (wish.sentAt !== undefined && head - wish.sentAt < patienceBlocks) return;
        wish.sentAt = head;
        await client.sendTransaction({ account: operator, to: contracts.token, data: wish.data, ...fees });
      };
      // The chain is there; a nonce that a reorg took away is another one next time.
      await serve().catch(() => undefined);
    }
    await pause(stage.blockMs, undefined, { signal }).catch(() => undefined);
  }
}

function encodeRelay(option: PayOption, signature: Hex): Hex {
  const [action] = option.actions;
  if (action?.type !== "walletRpc") throw new Error("there is nothing that anybody could submit");
  const [, typedData] = action.data.params;
  const { message } = JSON.parse(String(typedData)) as { message: Record<string, string> };
  const { from, to, value, validAfter, validBefore, nonce } = message as Record<string, Hex>;
  const { r, s, v = 27n } = parseSignature(signature);
  const numbers = [BigInt(value ?? 0), BigInt(validAfter ?? 0), BigInt(validBefore ?? 0)] as const;
  return encodeFunctionData({
    abi: usdcAbi,
    functionName: "transferWithAuthorization",
    args: [from ?? "0x", to ?? "0x", ...numbers, nonce ?? "0x", Number(v), r, s],
  });
}
