import type { ChainTables } from "../tables/chain-tables.ts";
import { type GrantsOf, ofWorkers, read, readers, writeAndDelete } from "./privileges.ts";

export const chainGrants: GrantsOf<ChainTables> = {
  chain_cursor: { ...ofWorkers, board: read },
  rpc_endpoint: { ...readers, worker: writeAndDelete, board: read },
  asset_unit: { ...ofWorkers, board: read },
  chain_block: { ...readers, worker: writeAndDelete, board: read },
  observation: { ...ofWorkers, board: read },
  dust: ofWorkers,
  failed_booking: {
    ...readers,
    worker: writeAndDelete,
    board: read,
    admin: { select: "all", update: ["retry_at"] },
  },
  asset_backfill: { ...readers, worker: writeAndDelete },
  database_epoch: { ...readers, worker: { select: "all", update: "all" } },
};
