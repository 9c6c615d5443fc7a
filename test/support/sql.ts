export { execute, namedDatabase } from "../../ops/local/sql.ts";
