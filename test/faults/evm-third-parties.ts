import { encodeFunctionData, type Hex, type PrivateKeyAccount, parseAbi } from "viem";
import { fundGas, mintUsdc } from "../../local/usdc.ts";
import { freshKey } from "./evm-buyers.ts";
import type { EvmEnvironment } from "./evm-environment.ts";
import type { Fault } from "./fault-scheduler.ts";
import { topFees } from "./gas-oracle-server.ts";
import type { Random } from "./seeded-random.ts";

const abi = parseAbi([
  "function mint(address, uint256)",
  "function transfer(address, uint256)",
  "function transferFrom(address, address, uint256)",
  "function collect(address token, address payer, uint256 amount, uint256 nonce, uint256 deadline, bytes signature)",
  "event Collected(address indexed token, address indexed payer, uint256 indexed nonce, uint256 amount)",
]);
const thirdPartyCount = 4;
const fortune = 1_000_000_000n;
/** How many blocks back a third party searches for the authorizations of others. */
const memoryBlocks = 40n;

/** Returns what third parties may do to a treasury on EVM, with their own transactions and in the background. */
export async function evmThirdPartyFaults(environment: EvmEnvironment, random: Random): Promise<Fault[]> {
  const { client, contracts, tokens, keys } = environment;
  const treasury = keys.treasury.address;
  const all = Array.from({ length: thirdPartyCount }, freshKey);
  const addresses = all.map(({ address }) => address);
  await fundGas(client, addresses);
  await mintUsdc(client, contracts.token, addresses, fortune);
  for (const token of [tokens.address.permit2, tokens.address.push])
    for (const address of addresses) {
      const data = encodeFunctionData({ abi, functionName: "mint", args: [address, fortune] });
      await client.waitForTransactionReceipt({ hash: await client.sendTransaction({ to: token, data }) });
    }
  const anyToken = () => random.pick(Object.values(tokens.address));
  const send = async (to: Hex, data: Hex, account: PrivateKeyAccount = random.pick(all)) => {
    // A transaction that the chain rejects has no effect.
    await client.sendTransaction({ account, to, data, ...topFees }).catch(() => undefined);
  };
  const transferFrom = (from: Hex, to: Hex, amount: bigint) =>
    encodeFunctionData({ abi, functionName: "transferFrom", args: [from, to, amount] });
  const deposit = (amount: bigint) =>
    send(anyToken(), encodeFunctionData({ abi, functionName: "transfer", args: [treasury, amount] }));
  const many = async (count: number, work: () => Promise<unknown>) => {
    for (let done = 0; done < count; done += 1) await work();
  };
  /** Produces a genuine log of our Collector for a fake token, under the nonce of an honest payment. */
  const collectGarbage = async () => {
    const account = random.pick(all);
    const newest = await client.getBlockNumber();
    const fromBlock = newest > memoryBlocks ? newest - memoryBlocks : 0n;
    const logs = await client.getLogs({ address: tokens.collector, event: abi[4], fromBlock, strict: true });
    const seen = logs.length === 0 ? undefined : random.pick(logs).args;
    const [nonce, amount] = [seen?.nonce ?? BigInt(random.between(1, 1_000_000)), seen?.amount ?? 1_000_000n];
    const deadline = 4_102_444_800n;
    const signature = await account.signTypedData({
      domain: { name: "Permit2", chainId: await client.getChainId(), verifyingContract: tokens.permit2 },
      types: {
        PermitTransferFrom: [
          { name: "permitted", type: "TokenPermissions" },
          { name: "spender", type: "address" },
          { name: "nonce", type: "uint256" },
          { name: "deadline", type: "uint256" },
        ],
        TokenPermissions: [
          { name: "token", type: "address" },
          { name: "amount", type: "uint256" },
        ],
      },
      primaryType: "PermitTransferFrom",
      message: { permitted: { token: tokens.garbage, amount }, spender: tokens.collector, nonce, deadline },
    });
    const args = [tokens.garbage, account.address, amount, nonce, deadline, signature] as const;
    await send(tokens.collector, encodeFunctionData({ abi, functionName: "collect", args }), account);
  };
  return [
    {
      name: "zero is transferred out of the treasury",
      run: () => many(3, () => send(anyToken(), transferFrom(treasury, random.pick(addresses), 0n))),
    },
    {
      name: "zero is transferred into the treasury",
      run: () => many(3, () => send(anyToken(), transferFrom(random.pick(addresses), treasury, 0n))),
    },
    { name: "dust is deposited", run: () => many(random.between(3, 12), () => deposit(BigInt(random.between(1, 99)))) },
    { name: "a third party deposits money", run: () => deposit(BigInt(random.between(1_000_000, 9_000_000))) },
    { name: "a garbage token is collected", run: collectGarbage },
    {
      name: "a garbage token emits a false transfer",
      run: () => send(tokens.garbage, transferFrom(random.pick(addresses), treasury, 2n ** 255n)),
    },
  ];
}
