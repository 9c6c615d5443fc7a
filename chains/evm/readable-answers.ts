import { ChainError, isUnreadable } from "../errors.ts";
import type { Endpoints, Rpc } from "./evm-rpc.ts";

/**
 * Runs several reads with one endpoint, and all of them with the next one if that endpoint stops answering or an answer cannot be read.
 * Throws the error of the unreadable answer when no endpoint gives another one.
 */
export async function readFromReadable<T>(
  { readFromOneEndpoint }: Pick<Endpoints, "readFromOneEndpoint">,
  read: (rpc: Rpc) => Promise<T>,
): Promise<T> {
  try {
    return (await readFromOneEndpoint((rpc) => read(rpc).catch(passOnUnreadable))).value;
  } catch (error) {
    throw error instanceof ChainError && isUnreadable(error.cause) ? error.cause : error;
  }
}

/** Throws `logs_refused` for an answer that cannot be read, after which the next endpoint is asked. Throws any other error unchanged. */
function passOnUnreadable(cause: unknown): never {
  if (!isUnreadable(cause)) throw cause;
  throw new ChainError("logs_refused", { cause, detail: "an answer cannot be read" });
}
