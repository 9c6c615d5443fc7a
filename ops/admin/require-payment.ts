import { findPaymentRow } from "../../db/queries/payments.ts";
import { type Context, RefusedError } from "./command.ts";

/** Throws RefusedError when there is no payment with this id: the empty list of a mistyped one says that nothing happened. */
export async function requirePayment({ db }: Pick<Context, "db">, id: string): Promise<void> {
  if (!(await findPaymentRow(db, id))) throw new RefusedError(`there is no payment ${id}`);
}
