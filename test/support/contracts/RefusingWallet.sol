// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A wallet that takes every signature as its own (ERC-1271), until it is given words: then it reverts with them.
contract RefusingWallet {
    bytes public words;

    function refuseWith(bytes calldata given) external {
        words = given;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        if (words.length > 0) revert(string(words));
        return 0x1626ba7e;
    }
}
