import type { Logger } from "pino";
import type { Chain } from "../chains/chain.ts";
import { writeAssetUnits } from "../db/queries/asset-units.ts";
import { deleteEndpointReports, writeEndpointReports } from "../db/queries/rpc-endpoints.ts";
import type { Db } from "../db/tables.ts";
import { repeatEvery } from "../runtime/repeat.ts";

/**
 * Interval between two reports of a worker, milliseconds. A worker that ends deletes its own; those of one that was killed are
 * deleted after an hour.
 */
const REPORT_EVERY_MS = 30_000;
const KEEP_MS = 3_600_000;

type Deps = { db: Db; chains: ReadonlyMap<string, Chain>; owner: string; now: () => Date; log: Logger };

/**
 * Writes what other processes show of the networks file. The units of the assets are written once; the api needs them when an asset
 * has left its file. How the RPC endpoints have done in this process is written by their names for the console, which has no networks
 * file. Returns the function that ends this and deletes the process's reports. Sends no request to an endpoint.
 */
export function reportNetworks(deps: Deps, everyMs: number = REPORT_EVERY_MS): () => Promise<void> {
  let areUnitsWritten = false;
  const report = async () => {
    if (!areUnitsWritten) await writeUnits(deps);
    areUnitsWritten = true;
    await reportEndpoints(deps);
  };
  let reporting: Promise<void> = Promise.resolve();
  const stop = repeatEvery(everyMs, () => {
    reporting = report().catch((err: unknown) => deps.log.warn({ err }, "networks cannot be reported"));
    return reporting;
  });
  return async () => {
    stop();
    await reporting;
    await deleteEndpointReports(deps.db, deps.owner);
  };
}

async function writeUnits({ db, chains }: Deps): Promise<void> {
  const units = [...chains.values()].flatMap(({ network }) => [...network.assets]);
  await writeAssetUnits(
    db,
    units.map(({ asset, symbol, decimals }) => ({ asset, symbol, decimals })),
  );
}

async function reportEndpoints({ db, chains, owner: worker, now }: Deps): Promise<void> {
  const at = now();
  const ago = (ms: number | undefined) => (ms === undefined ? null : new Date(at.getTime() - ms));
  const reports = [...chains.values()].flatMap(({ chain, listEndpointStatuses }) =>
    listEndpointStatuses().map(({ name, answeredMs, failedMs, error, calls, failures, height }) => ({
      ...{ chain, name, worker, reported_at: at, answered_at: ago(answeredMs), failed_at: ago(failedMs) },
      ...{ error: error ?? null, calls, failures, height: height ?? null },
    })),
  );
  await writeEndpointReports(db, { reports, forgetBefore: new Date(at.getTime() - KEEP_MS) });
}
