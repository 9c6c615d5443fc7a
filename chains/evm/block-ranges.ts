import { ChainError } from "../errors.ts";

/** A range of blocks, both ends included. */
export type BlockRange = { from: number; to: number };

/** Default number of blocks per part. Endpoints limit the blocks and logs of one answer. */
export const DEFAULT_BLOCKS_PER_PART = 50;

/**
 * Reads a range of blocks in parts, lowest first. If the endpoint refuses a part (ChainError `rpc_answer`), this part and
 * the later ones are halved, down to one block. Throws the refusal of a single block, and any other error of `read`.
 */
export async function* readRangeInParts<T>(
  range: BlockRange,
  read: (part: BlockRange) => Promise<T>,
  longest: number = DEFAULT_BLOCKS_PER_PART,
): AsyncGenerator<{ part: BlockRange; found: T }> {
  let length = longest;
  for (let from = range.from; from <= range.to; ) {
    const part = { from, to: Math.min(range.to, from + length - 1) };
    const answer = await read(part).then(
      (found) => ({ found }),
      (error: unknown) => {
        const isRefused = error instanceof ChainError && error.code === "rpc_answer";
        if (!isRefused || part.to === part.from) throw error;
        return undefined;
      },
    );
    if (answer) {
      yield { part, found: answer.found };
      from = part.to + 1;
    } else length = Math.ceil((part.to - part.from) / 2);
  }
}
