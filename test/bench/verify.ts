import { Registry } from "prom-client";
import type { Hex } from "viem";
import { openChains } from "../../chains/open.ts";
import { openDb } from "../../db/open.ts";
import { listOptionsById } from "../../db/options.ts";
import { createMetrics } from "../../ops/metrics.ts";
import { readNetworks } from "../../ops/networks.ts";
import type { Signed } from "../../transfers/verdict.ts";
import { checkSignature } from "../../transfers/verify.ts";
import type { Prepared } from "./payments.ts";

/** How long signatures are checked, milliseconds of one core. */
const FOR_MS = 1_500;

/** Signatures a second that one core checks: what buyers really signed, option by option, each time from the start. */
export async function benchVerify(
  postgresUrl: string,
  networksFile: string,
  prepared: readonly Prepared[],
): Promise<number> {
  const db = openDb(postgresUrl, { max: 1, applicationName: "pay-bench" });
  try {
    const chains = openChains(readNetworks(networksFile), createMetrics(new Registry(), "worker"));
    const options = new Map(
      (
        await listOptionsById(
          db,
          prepared.map(({ optionId }) => optionId),
        )
      ).map((row) => [row.id, row]),
    );
    const signed = prepared.flatMap(({ optionId, results }): Signed[] => {
      const option = options.get(optionId);
      return option ? [{ ...option, proof: results[0]?.data[0] as Hex, permit: null }] : [];
    });
    const check = (one: Signed) => {
      if (!checkSignature(chains, one).ok) throw new Error("a signature that a buyer made was refused");
    };
    signed.forEach(check);
    // Time on the core and not on the wall: other programs may run beside the bench.
    const begun = process.cpuUsage();
    const usedMs = () => {
      const { user, system } = process.cpuUsage(begun);
      return (user + system) / 1_000;
    };
    let checked = 0;
    while (usedMs() < FOR_MS) {
      signed.forEach(check);
      checked += signed.length;
    }
    return checked / (usedMs() / 1_000);
  } finally {
    await db.destroy();
  }
}
