import { ChainFault } from "../faults.ts";

/** Blocks, both ends among them. */
export type Range = { from: number; to: number };

/** Blocks of one part where nothing else is said: endpoints bound how many blocks and logs one answer covers. */
export const LONGEST_PART = 50;

/**
 * Reads a range of blocks in parts, lowest first. A part that the endpoint refuses is halved, and so are those after it,
 * down to one block. Throws what `read` throws for one block, and everything but a refusal (ChainFault `rpc_answer`).
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
