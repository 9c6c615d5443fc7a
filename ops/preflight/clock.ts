import { request } from "undici";
import { LARGEST_SKEW_MS } from "../../db/clock.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import type { PreflightDeps } from "./family.ts";
import { failure, type Outcome, ok, warning } from "./finding.ts";
import type { Check } from "./run-checks.ts";

/** The alert `ClockSkewed` fires from this difference on, milliseconds. */
const ALERT_MS = 5_000;
const TIMEOUT_MS = 5_000;
/** A Date header names whole seconds: on average it is this much older than the answer, milliseconds. */
const HEADER_AGE_MS = 500;

const remedy = "Run NTP on this machine and on Postgres' machine.";

/**
 * Compares this machine's clock with the clocks of the endpoints' web servers (the Date header of their answers). Blocks
 * would tell less: their times are seconds old, and a stalled endpoint returns old ones.
 */
export function clockCheck({ networks, now }: PreflightDeps): Check {
  const name = "clock";
  return {
    name,
    async run() {
      const answers = await Promise.all(listUrls(networks).map((url) => measureSkew(url, now)));
      return [describeSkew(answers.filter((skew) => skew !== undefined))];
    },
  };
}

/** Returns the outcome for a machine whose clock is ahead of others by these milliseconds. The median counts. */
export function describeSkew(skews: readonly number[]): Outcome {
  const name = "clock";
  const median = skews.toSorted((a, b) => a - b)[Math.floor(skews.length / 2)];
  if (median === undefined) return warning(name, "no endpoint sent its time, so nothing was compared", remedy);
  const servers =
    skews.length === 1 ? "1 endpoint's web server" : `the median of ${skews.length} endpoints' web servers`;
  const detail = `${(Math.abs(median) / 1_000).toFixed(1)} s ${median < 0 ? "behind" : "ahead of"} ${servers}`;
  if (Math.abs(median) > LARGEST_SKEW_MS) return failure(name, detail, `${remedy} Processes take no jobs like this.`);
  return Math.abs(median) > ALERT_MS ? warning(name, detail, remedy) : ok(name, detail);
}

function listUrls({ chains }: Networks): string[] {
  return [...new Set(chains.flatMap(({ rpc }) => rpc.map(({ url }) => url)))];
}

/** Returns how far this machine's clock is ahead of a server's, milliseconds; undefined if the server does not tell. */
async function measureSkew(url: string, now: () => Date): Promise<number | undefined> {
  try {
    const sent = now().getTime();
    const { headers, body } = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "[]",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const received = now().getTime();
    await body.dump();
    const server = Date.parse(String(headers["date"]));
    return Number.isNaN(server) ? undefined : (sent + received) / 2 - (server + HEADER_AGE_MS);
  } catch {
    return undefined;
  }
}
