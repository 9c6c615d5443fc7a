import { RpcRequestError } from "viem";
import { isRateLimit } from "./rpc-errors.ts";

/**
 * What an error of eth_getLogs means:
 * - `too_large`: the blocks, the logs or the time are more than one call may use. `blocks` is the longest range that the
 *   provider says it allows, if it says so.
 * - `rate_limited`: the provider limits calls per time. A shorter range does not help.
 * - `behind`: the node does not have one of the blocks yet. A shorter range does not help.
 * - `refused`: the node never answers this query, whatever the range: pruned history, too many topics, no such method.
 * - `unknown`: none of the texts below.
 */
export type LogError =
  | { kind: "too_large"; blocks: number | undefined }
  | { kind: "rate_limited" | "behind" | "refused" | "unknown" };

/** Texts of nodes without the block. Most have the code of invalid parameters (ethereum/execution-apis, pull request 875). */
const BEHIND = [
  /beyond (the )?(current )?head|after last accepted block|greater than latest block|in the future|future block/i,
  /unknown block|(block|header) not found|blocks specified in filter .* cannot be found/i,
];

const REFUSED = [
  /pruned|missing trie node|history .*unavailable|archive requests/i,
  /(addresses|topics) per search position|exceed max (addresses|topics)|number of address|query contains \d+ filters/i,
  /method .*(not (found|supported|available|allowed)|does not exist|disabled)|unauthorized|forbidden|api key/i,
];

const TOO_LARGE = [
  /range.*(too|exceed|limit|max|over|wide|larger|bigger|greater|should work|smaller|allowed)/i,
  /(limited|exceeds?|greater|larger|over|limit the query|at most|wide).*(range|blocks)|blocks distance|allowed number of requested blocks/i,
  /more than \d+ (results|logs)|too many (logs|results|blocks|events)|max results|query exceeds limit|smaller than size/i,
  /(response|result|body|content|payload).*(too (large|big)|exceed|size should not)/i,
  /tim(e|ed)[ -]?out|deadline exceeded/i,
  /^limit exceeded$/i,
];

/** Texts that state the longest range, as a number of blocks. */
const LONGEST = [
  /limited to (?:a |0 - )?([\d,.]+)/i,
  /up to a ([\d,.]+) block range/i,
  /max(?:imum)?(?: allowed)?(?: block)? ?range(?::| =| of)? ([\d,.]+)/i,
  /max: ([\d,.]+)/i,
  /maximum(?: allowed)?(?: number of requested blocks)? is(?: set to)? ([\d,.]+)/i,
  /ranges over ([\d,.]+) blocks/i,
  /range \d+ exceeds limit of ([\d,.]+)/i,
  /bigger than range limit ([\d,.]+)/i,
  /allowed for your plan \(\d+ > (\d+)\)/i,
  /at most ([\d,.]+) blocks/i,
  /block range exceeds server limit, narrow your filter: (\d+)/i,
  /blocks distance: (\d+)/i,
  /block range (?:exceeds|greater than) ([\d,.]+)/i,
  /too wide \(maximum (\d+)\)/i,
  /smaller than size ([\d,.]+)/i,
];

/** Texts that name a range that would be answered, in hexadecimal or decimal. Both ends are included. */
const SUGGESTED = /(?:block range should work|try with this block range):? \[(0x[0-9a-f]+), ?(0x[0-9a-f]+)\]/i;
const SUGGESTED_DECIMAL = /retry with the range (\d+)-(\d+)/i;

/** Longest text of an error that is searched, characters. An endpoint chooses the text. */
const MAX_SEARCHED = 2_000;

/** Returns what an error of eth_getLogs means. Nodes and providers have no common codes, so their texts are matched. */
export function classifyLogError(error: unknown): LogError {
  const answer = findAnswer(error);
  if (!answer) return { kind: "unknown" };
  const text = textOf(answer);
  const isOneOf = (patterns: readonly RegExp[]) => patterns.some((pattern) => pattern.test(text));
  if (isRateLimit(answer)) return { kind: "rate_limited" };
  if (isOneOf(BEHIND)) return { kind: "behind" };
  if (isOneOf(REFUSED)) return { kind: "refused" };
  if (isOneOf(TOO_LARGE)) return { kind: "too_large", blocks: readLongest(text) };
  return { kind: "unknown" };
}

/** Returns the message of an error with its data: some providers put the reason there. */
function textOf({ details, data }: RpcRequestError): string {
  const more = typeof data === "string" ? data : data === undefined ? "" : JSON.stringify(data);
  return [details, ...(more ? [more] : [])].join(" ").slice(0, MAX_SEARCHED);
}

function findAnswer(error: unknown): RpcRequestError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof RpcRequestError) return cause;
  return undefined;
}

/** Returns the longest range that a text allows, in blocks. */
function readLongest(text: string): number | undefined {
  const [, from, to] = SUGGESTED.exec(text) ?? SUGGESTED_DECIMAL.exec(text) ?? [];
  const stated = LONGEST.map((pattern) => pattern.exec(text)?.[1]).find((found) => found !== undefined);
  const thousands = /max is (\d+)k blocks/i.exec(text)?.[1];
  const blocks =
    from !== undefined && to !== undefined
      ? Number(to) - Number(from) + 1
      : thousands !== undefined
        ? Number(thousands) * 1_000
        : Number(stated?.replace(/[,.]/g, ""));
  return Number.isSafeInteger(blocks) && blocks > 0 ? blocks : undefined;
}
