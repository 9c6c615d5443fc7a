import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { queueNames } from "../../../queues/catalog.ts";

test("the documentation lists every queue that workers must serve together", () => {
  const text = readFileSync(new URL("../../../docs/operations.md", import.meta.url), "utf8");
  const list = /The queues are in `queues\/catalog\.ts`:([^.]+)\./.exec(text)?.[1] ?? "";
  const listed = [...list.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name);
  expect(listed.toSorted()).toEqual(queueNames.toSorted());
});
