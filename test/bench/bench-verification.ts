import { Registry } from "prom-client";
import { openChains } from "../../chains/open-chains.ts";
import { openDb } from "../../db/open.ts";
import { listOptionsById } from "../../db/queries/payment-options.ts";
import { readSigned } from "../../payments/lifecycle/wallet-results.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import type { Signed } from "../../transfers/verification.ts";
import { checkSignature } from "../../transfers/verifier.ts";
import type { Prepared } from "./run-payments.ts";

/** The duration of the measurement, milliseconds of one core. */
const FOR_MS = 1_500;

/** Returns how many of the buyers' real signatures one core verifies per second, each time without a cache. */
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
      return option ? [readSigned(option, results)] : [];
    });
    const check = (one: Signed) => {
      if (!checkSignature(chains, one).ok) throw new Error("a buyer's signature was refused");
    };
    signed.forEach(check);
    // CPU time, not wall time: other programs may run beside the bench.
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
