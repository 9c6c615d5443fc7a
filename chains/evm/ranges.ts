import { ChainFault } from "../faults.ts";

/** A range of blocks, both ends included. */
export type Range = { from: number; to: number };

/** Default number of blocks per part. Endpoints limit the blocks and logs of one answer. */
export const LONGEST_PART = 50;

/**
 * Reads a range of blocks in parts, lowest first. If the endpoint refuses a part (ChainFault `rpc_answer`), this part and
 * the later ones are halved, down to one block. Throws the refusal of a single block, and any other error of `read`.
 */
export async function* readInParts<T>(
  range: Range,
  read: (part: Range) => Promise<T>,
  longest: number = LONGEST_PART,
): AsyncGenerator<{ part: Range; found: T }> {
  let length = longest;
  for (let from = range.from; from <= range.to; ) {
    const part = { from, to: Math.min(range.to, from + length - 1) };
    const answer = await read(part).then(
      (found) => ({ found }),
      (error: unknown) => {
        const isRefused = error instanceof ChainFault && error.code === "rpc_answer";
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
