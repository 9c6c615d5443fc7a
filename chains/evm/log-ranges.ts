import { HttpRequestError, TimeoutError } from "viem";
import { ChainError } from "../errors.ts";
import type { Rpc } from "./evm-rpc.ts";
import { classifyLogError } from "./log-errors.ts";

/** A range of blocks, both ends included. */
export type BlockRange = { from: number; to: number };

/** Share by which a part grows after each answer. */
const GROWTH = 0.1;
/** Answers after which a length that was refused is tried again. */
const ANSWERS_UNTIL_RETRY = 64;

/** The length of the next part for one endpoint. `refused` is the shortest length that it refused lately. */
type PartLength = { blocks: number; refused: number; answers: number };

/** What the endpoints have allowed so far. It is kept between reads, so that a limit is found once and not in every pass. */
const lengths = new WeakMap<Rpc, PartLength>();

/**
 * Reads a range of blocks in parts, lowest first. Parts have at most `longest` blocks. When the endpoint refuses a part
 * because of its size, this part and the later ones are as long as the refusal states, or half as long; they grow again
 * slowly. A caller that stores its progress after each part never reads a part twice, and holds one part in memory.
 * Throws the refusal of a single block, and every error that a shorter range does not mend.
 * @param rpc the endpoint that `read` asks
 */
export async function* readRangeInParts<T>(
  rpc: Rpc,
  range: BlockRange,
  { longest, read }: { longest: number; read: (part: BlockRange) => Promise<T> },
): AsyncGenerator<{ part: BlockRange; found: T }> {
  for (let from = range.from; from <= range.to; ) {
    const length = lengths.get(rpc) ?? { blocks: longest, refused: Number.POSITIVE_INFINITY, answers: 0 };
    const part = { from, to: Math.min(range.to, from + Math.min(length.blocks, longest) - 1) };
    const blocks = part.to - part.from + 1;
    const answer = await read(part).then(
      (found) => ({ found }),
      (error: unknown) => {
        const shorter = shorten(length, blocks, error);
        if (shorter) lengths.set(rpc, shorter);
        if (!shorter || isSlow(error)) throw error;
        return undefined;
      },
    );
    if (!answer) continue;
    // A part that ends with the range says nothing about longer ones.
    if (blocks >= length.blocks) lengths.set(rpc, lengthen(length, longest));
    yield { part, found: answer.found };
    from = part.to + 1;
  }
}

/** Returns the next length after a part of `blocks` blocks failed; undefined if a shorter part does not help. Pure. */
function shorten(length: PartLength, blocks: number, error: unknown): PartLength | undefined {
  if (blocks === 1) return undefined;
  const half = Math.floor(blocks / 2);
  if (isSlow(error)) return { ...length, blocks: half };
  if (!(error instanceof ChainError) || error.code !== "rpc_answer") return undefined;
  const reason = classifyLogError(error);
  // An unknown text may be a refusal of the size: halving it costs a few calls, and not halving it could stop the chain.
  if (reason.kind === "unknown") return { ...length, blocks: half };
  if (reason.kind !== "too_large") return undefined;
  const { blocks: stated } = reason;
  if (stated !== undefined && stated < blocks) return { blocks: stated, refused: stated + 1, answers: 0 };
  return { blocks: half, refused: blocks, answers: 0 };
}

/** Returns the next length after an answer: a little longer, but for a while shorter than what was refused. Pure. */
function lengthen({ blocks, refused, answers }: PartLength, longest: number): PartLength {
  const limit = answers < ANSWERS_UNTIL_RETRY ? refused : Number.POSITIVE_INFINITY;
  const next = Math.min(longest, limit - 1, Math.ceil(blocks * (1 + GROWTH)));
  return { blocks: Math.max(1, next), refused: limit, answers: answers + 1 };
}

/** Statuses of a proxy that gave up waiting for the node, or whose answer was too long. */
const SLOW_STATUSES = [408, 413, 502, 503, 504, 524];

/**
 * Returns true if an endpoint may have failed because the part was too much for it: it timed out, or the proxy in front of
 * it gave up. The caller may ask another endpoint, so the error is thrown, and only the next part is shorter.
 */
export function isSlow(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof TimeoutError) return true;
    if (cause instanceof HttpRequestError) return SLOW_STATUSES.includes(cause.status ?? 0);
  }
  return false;
}
