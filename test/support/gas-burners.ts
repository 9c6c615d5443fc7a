import { type Hex, numberToHex, pad } from "viem";
import { mintUsdc } from "../../local/usdc.ts";
import type { TestChain } from "./evm-chain.ts";
import { type MerchantFixture, unwrap } from "./merchant-fixture.ts";
import { deployTestContract, testContract } from "./test-contracts.ts";

/** A contract wallet with USDC that burns gas. */
export type GasBurner = { address: Hex };
type Chain = Pick<TestChain, "client" | "contracts">;

async function fund(chain: Chain, address: Hex, amount: bigint): Promise<GasBurner> {
  await mintUsdc(chain.client, chain.contracts.token, [address], amount);
  return { address };
}

/** Deploys a wallet that burns all gas wherever gas has a price, funded with `amount` of USDC (default: 2). */
export async function deployPriceBurner(chain: Chain, amount = 2_000_000n): Promise<GasBurner> {
  return fund(chain, await deployTestContract(chain.client, "Wallets", "PriceBurner"), amount);
}

/** Deploys a wallet that no simulation detects: it burns all gas after the block number that `armBurners` stores in it. */
export async function deployBlockBurner(
  chain: Chain,
  { amount = 2_000_000n, salt = 0n }: { amount?: bigint; salt?: bigint } = {},
): Promise<GasBurner> {
  const hash = await chain.client.deployContract({ ...testContract("Wallets", "BlockBurner"), args: [salt] });
  const { contractAddress } = await chain.client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error("the wallet was not deployed");
  return fund(chain, contractAddress.toLowerCase() as Hex, amount);
}

/**
 * Makes block burners accept signatures up to the newest block and burn gas in the next; with `always` they never burn.
 */
export async function armBurners(chain: Chain, burners: readonly GasBurner[], always = false): Promise<void> {
  const until = always ? 2n ** 64n : await chain.client.getBlockNumber();
  for (const { address } of burners)
    await chain.client.setStorageAt({ address, index: pad("0x0"), value: numberToHex(until, { size: 32 }) });
}

/** Confirms a payment with a signature that only the wallet's code can accept. Returns the attempt's id. */
export async function confirmAsContractWallet(
  fixture: MerchantFixture,
  paymentId: string,
  burner: GasBurner,
  seed = 0,
): Promise<string> {
  const [option] = await fixture.offer(paymentId, burner);
  if (!option) throw new Error("there is no way to pay");
  const data = [`0x${"ab".repeat(64)}${seed.toString(16).padStart(8, "0")}`];
  const { attemptId } = unwrap(await fixture.confirm(paymentId, option.id, [{ type: "walletRpc", data }]));
  if (!attemptId) throw new Error("no attempt was made");
  return attemptId;
}
