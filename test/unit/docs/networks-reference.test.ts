import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { evmNetwork } from "../../../runtime/networks/evm-network.ts";
import { nativePrice, priceFeed } from "../../../runtime/networks/read-networks.ts";
import { solanaNetwork } from "../../../runtime/networks/solana-network.ts";

type Schema = { properties?: Record<string, Schema>; items?: Schema; anyOf?: Schema[]; oneOf?: Schema[] };

/** Returns the paths of all members of a schema, such as `assets[].domain.name`. */
function listPaths(schema: Schema, at = ""): string[] {
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => listPaths(one, at));
  const items = schema.items ? listPaths(schema.items, `${at}[]`) : [];
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const path = at === "" ? name : `${at}.${name}`;
    return [path, ...listPaths(member, path)];
  });
  return [...inner, ...items, ...members];
}

/** Returns the members of a schema, without the forms of a key, which docs/operations.md lists. */
const membersOf = (schema: z.ZodType) => {
  const json = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema;
  return [...new Set(listPaths(json).filter((path) => !path.includes("key.")))].sort();
};

const page = readFileSync(new URL("../../../docs/networks.md", import.meta.url), "utf8");
/** Returns the names in the first column of the tables of a section. */
const documented = (title: string) => {
  const section = page.split(`### ${title}\n`)[1]?.split(/\n##/, 1)[0] ?? "";
  return [...section.matchAll(/^\| (`[^|]+`) \|/gm)]
    .flatMap(([, cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name))
    .sort();
};

test("the reference names every member of the networks file, and no other", () => {
  const [evm, solana] = [membersOf(evmNetwork), membersOf(solanaNetwork)];
  const both = evm.filter((path) => solana.includes(path));
  expect(documented("Of every chain")).toEqual(both);
  expect(documented("Of EVM chains")).toEqual(evm.filter((path) => !both.includes(path)));
  expect(documented("Of Solana")).toEqual(solana.filter((path) => !both.includes(path)));
  expect(documented("Prices")).toEqual(membersOf(priceFeed));
  expect(documented("Prices of native coins")).toEqual(membersOf(nativePrice));
});
