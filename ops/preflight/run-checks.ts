import { ZodError } from "zod";
import { ChainError, type ChainErrorCode } from "../../chains/errors.ts";
import { cleanText } from "../../runtime/clean-text.ts";
import { ConfigError } from "../../runtime/config.ts";
import { describeBriefly, errorCode, errorMessage } from "../../runtime/redaction.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { type Finding, failure, type Outcome } from "./finding.ts";

/** A step of preflight. It returns one outcome per row; an error that it throws becomes an error row under `name`. */
export type Check = { name: string; run: () => Promise<readonly Outcome[]> };

/** Time limit of one check, milliseconds. Each call inside it has the network's own limit (`rpcTimeoutMs`). */
const CHECK_TIMEOUT_MS = 60_000;

/** Most of an unexpected error that is shown, in code points. */
const MAX_LENGTH = 200;

/** What to do about an error of chains/ that a check does not expect. */
const remedies: Partial<Record<ChainErrorCode, string>> = {
  rpc_unreachable:
    "Check the endpoint's URL, the key in it and this machine's connection; replace it if it stays down.",
  rpc_answer: "Use an endpoint that answers this call, or raise the limits of the provider's plan.",
  rpc_behind: "Wait until the endpoint has caught up, or replace it.",
  endpoints_disagree: "Query the endpoints, and replace the one that is wrong.",
  price_unconfirmed:
    "Bring the other endpoints back, or replace them: a process that starts now offers no payment that needs this price.",
  wrong_contract: "Correct the contract's address in the networks file.",
  wrong_key: "Put the key of this address where the networks file says, or correct the address.",
  signer_unavailable: "Check that this machine reaches the key service and has credentials for it.",
  signer_refused: "Allow these credentials to read this public key and to sign with the key.",
};

/** Runs checks one after the other, so that they do not disturb each other's measurements or use up a rate limit. */
export async function runChecks(
  place: { chain: string; endpoint?: string },
  checks: readonly Check[],
  onStart: (text: string) => void,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { name, run } of checks) {
    onStart([place.chain, place.endpoint, name].filter(Boolean).join(" "));
    const outcomes = await withTimeout(run(), CHECK_TIMEOUT_MS, name).catch((error: unknown) => [
      failure(name, describeProblem(error), remedyOf(error)),
    ]);
    findings.push(...outcomes.map((outcome) => ({ ...place, ...outcome })));
  }
  return findings;
}

/** Returns one line about an error, without secrets. An endpoint that does not answer is described by the cause. */
export function describeProblem(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof ZodError) return "the endpoint's answer does not have the form of the method";
  if (!(error instanceof ChainError)) return cleanText(describeBriefly(error), MAX_LENGTH);
  if (error.code !== "rpc_unreachable") return errorMessage(error);
  return `no answer (${describeSilence(error.cause)})`;
}

function describeSilence(cause: unknown): string {
  if (cause instanceof ChainError && cause.cause !== undefined) return describeSilence(cause.cause);
  if (!(cause instanceof Error)) return "unknown reason";
  const code = errorCode(cause) ?? errorCode(cause.cause);
  if (cause.name === "TimeoutError") return "timeout";
  return typeof code === "string" ? code : errorMessage(cause);
}

function remedyOf(error: unknown): string {
  const remedy = error instanceof ChainError ? remedies[error.code] : undefined;
  if (error instanceof ConfigError) return "Provide it to this process as the networks file says, or correct the file.";
  return remedy ?? "Run preflight again; if it persists, read the detail and correct the networks file.";
}
