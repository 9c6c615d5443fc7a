import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { clientTypesPath, generateClientTypes } from "../../../api/contract/generate-client-types.ts";

test("the client's types are those of the OpenAPI document (npm run client:types)", async () => {
  expect(await readFile(clientTypesPath, "utf8")).toBe(await generateClientTypes());
});
