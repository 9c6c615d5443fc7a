import { encodeFunctionData, type Hex, hashTypedData, type PrivateKeyAccount, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { multicallAbi } from "../../chains/evm/abi.ts";
import type { EvmBuyer } from "../../local/buyer-client.ts";
import { newKey } from "../../local/networks-document.ts";
import { fundGas, mintUsdc } from "../../local/usdc.ts";
import { testContract } from "../support/test-contracts.ts";
import type { EvmEnvironment } from "./evm-environment.ts";
import { type Kind, type Plan, tokenOf } from "./payment-plan.ts";
import type { Pushes } from "./rebroadcast-pushes.ts";

/** The payer of a payment: the wallet, its key, and the wallet's address where it is a contract. */
export type EvmPayer = { buyer: EvmBuyer; key: PrivateKeyAccount; contract: Hex | undefined };

const commonBuyers = 24;
const commonWallets = 4;
const unitsPerCent = 10_000n;
/** Whether payments of a kind have a payer of their own, who pays once and has just enough money. */
const hasOwnPayer = (kind: Kind) => /blocked|spent|burner|hostile/.test(kind) || tokenOf(kind) !== "usdc";
const tokenAbi = parseAbi(["function mint(address, uint256)", "function approve(address, uint256)"]);
export const walletAbi = parseAbi(["function execute(address to, bytes data)", "function arm()"]);

export const freshKey = () => privateKeyToAccount(newKey().privateKey);

/** Creates and funds every buyer before any fault. Common buyers never run out of money; the others have just enough. */
export async function fundEvmBuyers(
  environment: EvmEnvironment,
  plans: readonly Plan[],
  pushes: Pushes,
): Promise<(plan: Plan) => EvmPayer> {
  const { client, contracts } = environment;
  const common = Array.from({ length: commonBuyers }, freshKey).map(withKey);
  const wallets: EvmPayer[] = [];
  for (let count = 0; count < commonWallets; count += 1) wallets.push(await withWallet(environment, "HonestWallet"));
  const own = new Map<number, { plan: Plan; payer: EvmPayer }>();
  for (const plan of plans.filter(({ kind }) => hasOwnPayer(kind)))
    own.set(plan.index, { plan, payer: await makeOwn(environment, plan.kind, pushes) });

  const addressOf = ({ buyer }: EvmPayer) => buyer.address;
  await mintUsdc(client, contracts.token, [...common, ...wallets].map(addressOf), 1_000_000_000_000n);
  const alone = [...own.values()];
  for (const { plan, payer } of alone.filter(({ plan }) => tokenOf(plan.kind) === "usdc"))
    await mintUsdc(client, contracts.token, [payer.buyer.address], BigInt(plan.cents) * unitsPerCent);
  await mintOthers(environment, alone);
  await fundGas(
    client,
    alone.map(({ payer }) => payer.key.address),
  );
  for (const { plan, payer } of alone) if (plan.kind === "hostile") await allowPermit2(environment, payer);
  return ({ index, kind }) => {
    const payer =
      own.get(index)?.payer ?? (kind === "wallet" ? wallets[index % commonWallets] : common[index % commonBuyers]);
    if (payer === undefined) throw new Error("the payment has no buyer");
    return payer;
  };
}

function withKey(key: PrivateKeyAccount): EvmPayer {
  return { buyer: key, key, contract: undefined };
}

async function makeOwn(environment: EvmEnvironment, kind: Kind, pushes: Pushes): Promise<EvmPayer> {
  if (kind === "burner") return withWallet(environment, "BurningWallet");
  if (kind === "hostile") return withWallet(environment, "RevertingWallet");
  const key = freshKey();
  if (tokenOf(kind) !== "push") return withKey(key);
  const gap = kind === "stuck push" ? 1 : 0;
  const { address, signTypedData } = key;
  return {
    buyer: { address, signTypedData, sendCall: (call) => pushes.send(key, call, gap) },
    key,
    contract: undefined,
  };
}

/** Deploys a contract wallet that accepts its owner's signatures (ERC-1271). */
async function withWallet({ client }: EvmEnvironment, contract: string): Promise<EvmPayer> {
  const key = freshKey();
  const hash = await client.deployContract({ ...testContract("Hostile", contract), args: [key.address] });
  const { contractAddress } = await client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error(`${contract} was not deployed`);
  const signTypedData = (async (data: Parameters<typeof hashTypedData>[0]) =>
    key.sign({ hash: hashTypedData(data) })) as PrivateKeyAccount["signTypedData"];
  return { buyer: { address: contractAddress, signTypedData }, key, contract: contractAddress };
}

/** Mints all amounts in tokens other than USDC, in one transaction. */
async function mintOthers(
  { client, contracts, tokens }: EvmEnvironment,
  all: readonly { plan: Plan; payer: EvmPayer }[],
) {
  const calls = all
    .filter(({ plan }) => tokenOf(plan.kind) !== "usdc")
    .map(({ plan, payer }) => {
      const args = [payer.buyer.address, BigInt(plan.cents) * unitsPerCent] as const;
      const callData = encodeFunctionData({ abi: tokenAbi, functionName: "mint", args });
      return { target: tokens.address[tokenOf(plan.kind)], callData };
    });
  const data = encodeFunctionData({ abi: multicallAbi, functionName: "tryAggregate", args: [true, calls] });
  const hash = await client.sendTransaction({ to: contracts.multicall, data });
  await client.waitForTransactionReceipt({ hash });
}

/** Lets a contract wallet approve Permit2 by a transaction: it has no key that could sign the token's permit. */
async function allowPermit2({ client, tokens }: EvmEnvironment, { key, contract }: EvmPayer): Promise<void> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "approve", args: [tokens.permit2, 2n ** 255n] });
  const execute = { abi: walletAbi, functionName: "execute", args: [tokens.address.permit2, data] } as const;
  const hash = await client.writeContract({ ...execute, address: contract ?? "0x", account: key });
  await client.waitForTransactionReceipt({ hash });
}
