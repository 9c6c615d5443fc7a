import type { PaymentDeps } from "../../payments/payment-deps.ts";
import type { Log } from "../../runtime/log.ts";

/** What the console works with. `db` limits the time of a statement: some searches read a whole table. */
export type ConsoleDeps = Pick<PaymentDeps, "db" | "now"> & { log: Log };
