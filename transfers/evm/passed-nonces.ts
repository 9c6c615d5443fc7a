import { type Hex, hexToNumber, numberToHex } from "viem";
import { parseAnswer } from "../../chains/errors.ts";
import { readBlock } from "../../chains/evm/blocks.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { type Cursor, findBlock } from "../../db/queries/chain-cursors.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** The next nonce of an account at a block. */
type Reading = { nonce: number; number: number; blockId: string };

/** The first readings of each chain that were past a nonce, by account and nonce. They count once their block is final. */
const readings = new WeakMap<EvmChain["endpoints"], Map<string, Reading>>();

/**
 * Returns true when an account's nonce is past the given one at a block that the watcher has read and confirmed. Most nodes keep the
 * state of the newest 128 blocks only, and on many chains a block is final later than that. The nonce is therefore read at
 * the cursor's block, and the reading counts when that block has become final. A process that has not read it takes that time
 * once more.
 */
export async function isNoncePassed(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  { address, nonce, cursor }: { address: Hex; nonce: number; cursor: Cursor },
): Promise<boolean> {
  const known = readings.get(chain.endpoints) ?? new Map<string, Reading>();
  readings.set(chain.endpoints, known);
  const key = `${address} ${nonce}`;
  const former = known.get(key);
  const isUsable = former !== undefined && (await isStored(deps, chain, former));
  const reading = isUsable ? former : await readNonceAt(chain, address, cursor);
  known.delete(key);
  if (!reading || reading.nonce <= nonce) return false;
  if (reading.number <= cursor.finalNumber) return true;
  known.set(key, reading);
  return false;
}

/** Returns the account's next nonce at the cursor's block, or undefined when the endpoint has another block at that height. */
async function readNonceAt(chain: EvmChain, address: Hex, { number, blockId }: Cursor): Promise<Reading | undefined> {
  const { nonce, hash } = await readFromReadable(chain, async (rpc) => {
    const count = await rpc({ method: "eth_getTransactionCount", params: [address, numberToHex(number)] });
    return { nonce: parseAnswer(() => hexToNumber(count)), hash: (await readBlock(rpc, number)).hash };
  });
  return hash === blockId ? { nonce, number, blockId } : undefined;
}

/** Returns true while the block of a reading is on the chain that the watcher follows. */
async function isStored(
  { db }: Pick<TransferDeps, "db">,
  { chain }: EvmChain,
  { number, blockId }: Reading,
): Promise<boolean> {
  return (await findBlock(db, { chain, number }))?.hash === blockId;
}
