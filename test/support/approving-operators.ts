import { generateKeyPairSync } from "node:crypto";
import { type StatementSubject, signText, writeStatement } from "../../signer/statements.ts";

/**
 * Creates operators with approval keys. `listed` is their entry of the signer's limits file, and `approve` has all or some of
 * them sign a statement.
 */
export function makeOperators(deployment: string, names: readonly string[] = ["alice", "bob"]) {
  const operators = names.map((name) => ({ name, ...generateKeyPairSync("ed25519") }));
  const listed = operators.map(({ name, publicKey }) => {
    const { x = "" } = publicKey.export({ format: "jwk" });
    return { name, publicKey: Buffer.from(x, "base64url").toString("hex") };
  });
  const approve = (subject: StatementSubject, by: readonly string[] = names) => {
    const text = writeStatement(subject, { deployment, at: new Date() });
    return operators
      .filter(({ name }) => by.includes(name))
      .map(({ name, privateKey }) => ({ text, signer: name, signature: signText(privateKey, text) }));
  };
  return { listed, approve };
}
