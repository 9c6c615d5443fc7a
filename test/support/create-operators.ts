import type { Db } from "../../db/tables.ts";
import { createOperator, type OperatorRole } from "../../payments/operators/operators.ts";
import type { Encrypt } from "../../runtime/encryption.ts";
import { unwrap } from "./merchant-fixture.ts";
import { testActor } from "./test-actor.ts";

/** Creates an approver (anna), an operator (olga) and a viewer (vera). Returns what each logs in with. */
export async function createOperators(deps: { db: Db; now: () => Date; encryptTotpSecret: Encrypt }) {
  const create = async (name: string, role: OperatorRole) => {
    const { password, totp } = unwrap(await createOperator(deps, { actor: testActor, name, role }));
    return { password, secret: new URL(totp).searchParams.get("secret") ?? "" };
  };
  return {
    anna: await create("anna", "approver"),
    olga: await create("olga", "operator"),
    vera: await create("vera", "viewer"),
  };
}
