import { isHex, type RpcLog } from "viem";

/** A number that a double holds exactly. */
const QUANTITY = /^0x[0-9a-f]{1,13}$/i;

const isQuantity = (value: unknown) => typeof value === "string" && QUANTITY.test(value);
/** A log of a block that is not mined yet has no place. */
const isAbsent = (value: unknown) => value === null || value === undefined;

/** Returns an endpoint's logs. Throws TypeError unless each of them has the members that we read, in hex. */
export function requireLogs(answer: readonly RpcLog[]): RpcLog[] {
  const logs: unknown = answer;
  if (!Array.isArray(logs)) throw new TypeError("the logs are no list");
  const wrong = logs.findIndex((log) => !isLog(log));
  if (wrong >= 0) throw new TypeError(`log ${wrong} of the answer is malformed`);
  return logs;
}

function isLog(log: Partial<Record<keyof RpcLog, unknown>> | null | undefined): boolean {
  return (
    isHex(log?.address) &&
    isHex(log?.data) &&
    Array.isArray(log?.topics) &&
    log.topics.every((topic) => isHex(topic)) &&
    [log.blockHash, log.transactionHash].every((hash) => isAbsent(hash) || isHex(hash)) &&
    [log.blockNumber, log.logIndex].every((number) => isAbsent(number) || isQuantity(number))
  );
}
