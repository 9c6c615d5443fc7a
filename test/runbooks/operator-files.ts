import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestBed } from "./test-bed.ts";

/** Writes the keys of two operators to files. `listed` is an operator's entry of the limits file. */
export async function makeOperatorFiles({ stack }: TestBed) {
  return Promise.all(
    ["alice", "bob"].map(async (name) => {
      const { publicKey, privateKey } = generateKeyPairSync("ed25519");
      const file = join(stack.dir, `${name}.key`);
      await writeFile(file, privateKey.export({ format: "pem", type: "pkcs8" }));
      const { x = "" } = publicKey.export({ format: "jwk" });
      return { name, file, listed: { name, publicKey: Buffer.from(x, "base64url").toString("hex") } };
    }),
  );
}
